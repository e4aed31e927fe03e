/* SPDX-License-Identifier: ISC */
#include "session/login/client_login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "session/auth/client_login_state.h"
#include "session/auth/exchange.h"
#include "session/auth/method.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/login/admission.h"
#include "session/login/client_identity.h"
#include "session/login/drop_silent_logins.h"
#include "session/lookup/auth_query.h"
#include "session/parameters/client_parameters.h"
#include "session/pool/eviction.h"
#include "session/server/own_connection.h"
#include "session/serving/replication.h"
#include "wire/startup.h"

/* --- after authentication ----------------------------------------------------------------- */

/* Database and shutdown may have changed during the wait: admission checks them again. */
void client_login_checked(struct client_link *client)
{
	client_enter(client, CLIENT_AUTHENTICATING);
	client_limits_start(client);
	admission_begin(client);
}

void client_login_proceed(struct client_link *client, enum auth_result result)
{
	if (client->link.state != CLIENT_AUTHENTICATING)
		return;
	switch (result) {
	case AUTH_PENDING:
		break;
	case AUTH_PASSED:
		admission_begin(client);
		break;
	case AUTH_REFUSED:
		client_close_for(client, client->login->refusal);
		break;
	}
}

enum auth_result client_login_learn(struct client_link *client, const char *password)
{
	struct login *login = client->login;
	struct user *user = client->user;
	const bool exempt = client_identity_is_console(client) && client->admin;

	credential_unref(login->credential);
	login->credential = credential_new(password, strlen(password));
	if (login->credential && user == login->mock)
		user = registry_open_user(link_registry(&client->link), user->name);
	login->refusal = REASON_NO_MEMORY;
	if (!login->credential || !user)
		return AUTH_REFUSED;
	login->credential->is_password = true;
	if (user == client->user)
		return AUTH_PASSED;
	login->refusal = REASON_MAX_USER_CLIENT_CONNECTIONS;
	return limits_take_user(client, user, exempt) ? AUTH_PASSED : AUTH_REFUSED;
}

/* --- from the user to authentication ------------------------------------------------------ */

static void log_attempt(const struct client_link *client, const char *user)
{
	static const char *const kinds[] = {
		[REPLICATION_NONE] = "no",
		[REPLICATION_LOGICAL] = "database",
		[REPLICATION_PHYSICAL] = "yes",
	};
	const char *replication = kinds[client->replication];
	char text[TLS_TEXT_SIZE];
	const char *tls = text;

	if (!link_registry(&client->link)->process->settings->log_connections)
		return;
	tls_text(&client->link.stream, text);
	if (text[0] == '\0')
		tls = "no";
	link_log_facts(&client->link, LEVEL_LOG,
		&(struct link_facts){
			.facts = {{"tls", tls, 0}, {"replication", replication, 0}},
			.count = 2,
		},
		"login attempt: db=%s user=%s tls=%s replication=%s",
		client->login->database_name, user, tls, replication);
}

static void begin_authentication(struct client_link *client)
{
	const struct settings *settings = link_registry(&client->link)->process->settings;

	client->login->method = auth_method_of(settings->auth_type);
	client_login_proceed(client, client->login->method->begin(client));
}

/* The client's user is set: check its rights on the console, then begin the authentication. */
static void authenticate(struct client_link *client, const char *name)
{
	log_attempt(client, name);
	if (client_identity_check_rights(client, name))
		begin_authentication(client);
}

/* --- users that are in no file ------------------------------------------------------------ */

/*
 * During the look-up a client is counted for the user of its startup message, if this user has
 * a [users] entry; otherwise the client gets a mock user.
 */
static void look_up(struct client_link *client, const char *name)
{
	struct user *user = registry_find_user(link_registry(&client->link), name);

	if (user && user->config ? !client_identity_count(client, user)
				 : !client_identity_take_mock(client, name)) {
		if (client->link.state != CLIENT_CLOSED)
			client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	auth_query_begin(client, name);
}

/*
 * Return the credential for this login, with a reference. If the pool has the same secret, its
 * credential is shared, with the keys derived from it. If the pool has another secret, the
 * fetched one replaces it, so that keys proved against the old secret are no longer used at
 * servers.
 */
static struct credential *choose_credential(
	const struct client_link *client, struct credential *fetched)
{
	struct pool *pool = NULL;

	if (client->database && !client->database->config->user)
		pool = registry_find_pool(
			client->database, client->user, client->login->asked_role);
	if (!pool || !pool->credential)
		return credential_ref(fetched);
	if (!credential_equal(pool->credential, fetched))
		pool_set_credential(pool, fetched);
	return credential_ref(pool->credential);
}

void client_login_found(
	struct client_link *client, const char *name, struct credential *credential)
{
	const struct login_steps *steps = client->login->steps;
	struct user *user = registry_open_user(link_registry(&client->link), name);

	client_enter(client, CLIENT_AUTHENTICATING);
	client_limits_start(client);
	if (!user) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	if (!client_identity_count(client, user))
		return;
	client->login->credential = choose_credential(client, credential);
	authenticate(client, name);
	steps->resume(client);
}

/* --- the steps of a login ----------------------------------------------------------------- */

static void log_in(struct client_link *client, const char *name)
{
	struct registry *registry = link_registry(&client->link);

	if (!client_identity_take_database(client, name))
		return;
	if (client_identity_is_operator(client, name)) {
		client->user = registry->console_pool->user;
		client->link.pool = registry->console_pool;
		client->admin = true;
		if (registry->process->settings->log_connections)
			link_log(&client->link, LEVEL_LOG, "pgbouncer access from unix socket");
		admission_to_console(client);
		return;
	}
	if (strlen(name) > CLIENT_USER_NAME_MAX) {
		if (registry->process->settings->log_connections)
			link_log_repeated(&client->link, LEVEL_LOG,
				"login failed: db=%s user=%.128s", client->login->database_name,
				name);
		client_close_for(client, REASON_USERNAME_TOO_LONG);
		return;
	}
	/* The auth_query may have to run in an automatic database that is not made yet. */
	if (client_identity_needs_lookup(client, name) && client_identity_open_database(client))
		look_up(client, name);
	else if (client->link.state != CLIENT_CLOSED && client_identity_take_user(client, name))
		authenticate(client, name);
}

/* --- logins after failures of their address ------------------------------------------------ */

static void on_delay_over(struct deadline *deadline)
{
	struct login *login =
		(struct login *)((char *)deadline - offsetof(struct login, delayed));
	char *name = login->delayed_user;

	login->delayed_user = NULL;
	log_in(login->client, name);
	free(name);
}

/*
 * Begin the login, or let it wait if logins from its address have failed. This is before
 * anything is looked up or checked, so that a waiting login takes nothing but its memory, and
 * its time depends on the address only. A password that the client sends meanwhile was not
 * asked for: it closes the client.
 */
static void log_in_or_wait(struct client_link *client, const char *name)
{
	struct registry *registry = link_registry(&client->link);
	struct login *login = client->login;
	const usec_t delay = sources_delay(client);

	if (delay == 0) {
		log_in(client, name);
		return;
	}
	login->delayed_user = strdup(name);
	if (!login->delayed_user) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	registry->counters.logins_delayed++;
	link_log_repeated(&client->link, LEVEL_LOG,
		"login waits for %.1f s, since logins from its address have failed",
		(double)delay / USEC_PER_SEC);
	login->delayed.expire = on_delay_over;
	wheel_set(&registry->loop->wheel, &login->delayed, loop_now(registry->loop) + delay);
}

/*
 * Returns false when the client exceeds max_client_conn. Silent clients that have not logged in
 * are closed first to make room.
 */
static bool is_within_max_client_conn(struct client_link *client, bool console)
{
	struct registry *registry = link_registry(&client->link);

	while (!limits_allow_client(registry, console)) {
		if (!drop_silent_logins_one(registry, client, CLIENT_REJECTED_MAX_CLIENT_CONN))
			return false;
	}
	return true;
}

/* Close an idle server beyond those that descriptors are kept for, or a silent client. */
static bool free_descriptor(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);

	return (descriptors_servers_exceed(registry->process) && eviction_run(registry)) ||
		drop_silent_logins_one(registry, client, CLIENT_REJECTED_FD_LIMIT);
}

/* Returns false when no descriptor is left for the client, which is closed then. */
static bool has_descriptor(struct client_link *client, bool console)
{
	struct registry *registry = link_registry(&client->link);
	struct failure why;
	char limit[16];

	while (!descriptors_allow_client(registry->process, console)) {
		if (free_descriptor(client))
			continue;
		snprintf(limit, sizeof(limit), "%u", registry->process->descriptors.limit);
		why = failure_of(REASON_NO_DESCRIPTORS, limit);
		client_close(client, &why);
		return false;
	}
	limits_admit_client(client, console);
	eviction_ask_ahead(registry);
	return true;
}

bool client_login_names_console(const struct registry *registry, const char *name)
{
	return strcmp(name, "pgbouncer") == 0 ||
		(strcmp(name, "pgusher") == 0 && !registry_find_database(registry, name));
}

/*
 * Send NegotiateProtocolVersion if the client has requested a newer protocol or unknown
 * protocol options. Returns false when the client was closed.
 */
static bool negotiate(struct client_link *client, const struct startup_login *wanted,
	const uint8_t *message, size_t total)
{
	struct buffer out;
	bool good = true;

	buffer_init(&out);
	if (startup_write_negotiation(&out, wanted, message, total))
		good = link_send(&client->link, &out);
	else
		buffer_free(&out);
	if (!good)
		client_close_for(client, REASON_UNEXPECTED_EOF);
	return good;
}

/* Does client_tls_sslmode require TLS, and is the connection neither encrypted nor local? */
static bool must_encrypt(const struct client_link *client)
{
	return link_registry(&client->link)->process->settings->client_tls_sslmode >=
		TLS_MODE_REQUIRE &&
		client->link.remote.family != AF_UNIX && !client->link.stream.tls;
}

bool client_login_is_barred(const struct client_link *client)
{
	return client->proxy == PROXY_REQUIRED || must_encrypt(client) ||
		!sources_allow(client);
}

/*
 * Returns false when the client, which was closed then, is a server connection of this process.
 * Such a connection to the console is no loop.
 */
static bool comes_from_elsewhere(
	struct client_link *client, const char *database, const uint8_t *message, size_t length)
{
	char name[256];

	text_copy(name, sizeof(name), database);
	if (!own_connection_is_client(client, message, length, name, sizeof(name)))
		return true;
	link_log_repeated(&client->link, LEVEL_ERROR,
		"connection loop: host and port of database \"%s\" lead back to this process",
		name);
	client_close_for(client, REASON_CONNECTION_LOOP);
	return false;
}

void client_login_begin(struct client_link *client, const uint8_t *message, size_t total,
	const struct login_steps *steps)
{
	const struct registry *registry = link_registry(&client->link);
	struct startup_login wanted;
	bool console;

	switch (startup_read(message, total, &wanted)) {
	case STARTUP_GOOD:
		break;
	case STARTUP_BAD_LAYOUT:
		client_close_for(client, REASON_INVALID_STARTUP_LAYOUT);
		return;
	case STARTUP_NO_USER:
		client_close_for(client, REASON_NO_USERNAME_SUPPLIED);
		return;
	}
	if (client->proxy == PROXY_REQUIRED) {
		client_close_for(client, REASON_PROXY_HEADER_MISSING);
		return;
	}
	if (must_encrypt(client)) {
		client_close_for(client, REASON_SSL_REQUIRED);
		return;
	}
	client_enter(client, CLIENT_AUTHENTICATING);
	if (!client_login_new(client, &wanted, steps) || !replication_want(client, &wanted)) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	if (!client_parameters_take(client, &wanted, message, total))
		return;
	console = client_login_names_console(registry, wanted.database);
	if (!console && !comes_from_elsewhere(client, wanted.database, message, total))
		return;
	/* First, so that no silent client is closed in favour of one that is refused. */
	if (!sources_allow(client)) {
		client_close_for(client, REASON_MAX_CLIENT_CONN_PER_ADDRESS);
		return;
	}
	if (!is_within_max_client_conn(client, console)) {
		client_close_for(client, REASON_MAX_CLIENT_CONN);
		return;
	}
	if (!has_descriptor(client, console))
		return;
	if (negotiate(client, &wanted, message, total))
		log_in_or_wait(client, wanted.user);
}

void client_login_password(struct client_link *client, const uint8_t *body, size_t length)
{
	struct login *login = client->login;

	/* No method has been chosen yet, or the method requests no password. */
	if (!login->method || !login->method->answer) {
		client_close_for(client, REASON_BAD_PACKET);
		return;
	}
	/* An empty password is refused with its own reason, whatever the method is. */
	if ((length == 0 || (length == 1 && body[0] == '\0')) && !login->answered_first) {
		login->refusal = REASON_EMPTY_PASSWORD;
		client_login_proceed(client, AUTH_REFUSED);
		return;
	}
	client_login_proceed(client, login->method->answer(client, body, length));
}
