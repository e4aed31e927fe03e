/* SPDX-License-Identifier: ISC */
#include "session/client_login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/text.h"
#include "net/tls.h"
#include "session/auth/derivation.h"
#include "session/auth/inquiry.h"
#include "session/auth/refusal.h"
#include "session/auth_query.h"
#include "session/client_greeting.h"
#include "session/client_limits.h"
#include "session/client_session.h"
#include "session/ending.h"
#include "session/login_counts.h"
#include "session/lookup_server.h"
#include "session/replication.h"
#include "session/shedding.h"
#include "session/welcome.h"
#include "wire/message.h"
#include "wire/parameter_draft.h"
#include "wire/startup.h"
#include "wire/writer.h"

/* --- who is at it ------------------------------------------------------------------------- */

struct client_link *client_login_find(const struct registry *registry, uint64_t id)
{
	struct link *link;

	TAILQ_FOREACH (link, &registry->logins, place) {
		if (link->id == id && link->state == CLIENT_AUTHENTICATING)
			return client_of(link);
	}
	return NULL;
}

size_t client_login_key_length(const struct client_link *client)
{
	/* Not all peers may know longer ones: PgBouncer refuses to pass them on. */
	if (link_registry(&client->link)->settings->peer_id > 0)
		return CANCEL_KEY_MIN;
	return client->login->version > PROTOCOL_3_0 ? CANCEL_KEY_MAX : CANCEL_KEY_MIN;
}

bool client_login_send_farewell(struct client_link *client)
{
	struct buffer *farewell;
	size_t length;

	if (client->link.state > CLIENT_WELCOMING || !client->login)
		return true;
	farewell = &client->login->farewell;
	length = farewell->length;
	buffer_clear(farewell);
	return length == 0 ||
		stream_send_bytes(&client->link.stream, farewell->data, length) !=
		STREAM_SENT_NOT;
}

void client_login_end(struct client_link *client, enum client_state state)
{
	struct login *login = client->login;

	if (state > CLIENT_WELCOMING || !login)
		return;
	lookup_client_gone(login);
	if (login->mock) {
		if (client->user == login->mock)
			client->user = NULL;
		free(login->mock);
	}
	if (login->inquiry)
		inquiry_abandon(login->inquiry);
	derivation_abandon(link_registry(&client->link), login->derivation);
	refusal_forget(login);
	credential_unref(login->credential);
	hba_unref(login->hba);
	scram_server_free(&login->scram);
	buffer_wipe(&login->final);
	buffer_free(&login->farewell);
	buffer_free(&login->option_names);
	free(login->database_name);
	explicit_bzero(login, sizeof(*login));
	free(login);
	client->login = NULL;
}

/* --- after authentication ----------------------------------------------------------------- */

static bool is_console(const struct client_link *client)
{
	return client->database && client->database->console;
}

static void log_failed(const struct client_link *client)
{
	if (link_registry(&client->link)->settings->log_connections)
		link_log_repeated(&client->link, LEVEL_LOG, "login failed: db=%s user=%s",
			client->login->database_name, client->user->name);
}

static void open_console(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	if (!cancel_keys_issue(&registry->cancel_keys, client, client_login_key_length(client),
		    &registry->loop->random)) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	if (!client_login_send_farewell(client)) {
		client_close_for(client, REASON_UNEXPECTED_EOF);
		return;
	}
	client->link.pool = registry->console_pool;
	login_counts_passed(client);
	client_login_end(client, CLIENT_AUTHENTICATING);
	stream_set_handlers(&client->link.stream, &client_console_handlers);
	client_enter(client, CLIENT_CONSOLE);
	deadline_cancel(&client->deadline);
	registry->console.begin(client);
}

/* Automatic databases are made only now: a name alone must not cost memory. */
static bool open_database(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	struct database *database;
	bool made;

	if (client->database)
		return !client->database->gone;
	database = registry_open_database(registry, client->login->database_name, &made);
	if (!database)
		return false;
	if (made)
		link_log(&client->link, LEVEL_LOG, "registered new auto-database: %s",
			database->name);
	if (limits_take_database(client, database, false))
		return true;
	client_close_for(client, REASON_MAX_DB_CLIENT_CONNECTIONS);
	return false;
}

static void authenticated(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	struct failure why;
	struct user *user;
	char name[64];

	if (is_console(client)) {
		open_console(client);
		return;
	}
	if (!open_database(client)) {
		if (client->link.state == CLIENT_CLOSED)
			return;
		log_failed(client);
		text_copy(name, sizeof(name), client->login->database_name);
		why = failure_of(REASON_NO_SUCH_DATABASE, name);
		client_close(client, &why);
		return;
	}
	if (client->database->disabled) {
		why = failure_of(REASON_DATABASE_DISABLED, client->database->name);
		client_close(client, &why);
		return;
	}
	if (registry->shutdown != SHUTDOWN_NONE) {
		client_close_for(client, REASON_POOLER_SHUTTING_DOWN);
		return;
	}
	user = registry_server_user(registry, client->database, client->user);
	client->link.pool = user ? registry_open_pool(registry, client->database, user) : NULL;
	if (!client->link.pool) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	/* A forced user's secret is none of the client's: it stands in our files. */
	if (!client->database->config->user)
		pool_set_credential(client->link.pool, client->login->credential);
	welcome_or_wait(client);
}

/* What may have changed while it waited is looked at again. */
void client_login_proven(struct client_link *client)
{
	client_enter(client, CLIENT_AUTHENTICATING);
	client_limits_start(client);
	authenticated(client);
}

void client_login_proceed(struct client_link *client, enum auth_result result)
{
	if (client->link.state != CLIENT_AUTHENTICATING)
		return;
	switch (result) {
	case AUTH_PENDING:
		break;
	case AUTH_PASSED:
		authenticated(client);
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
	const bool exempt = is_console(client) && client->admin;

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

/* --- the startup message ------------------------------------------------------------------ */

/* With the address; who reads logs by column widths knows it. */
enum { APPLICATION_NAME_SIZE = 400 };

/* `NAME - ADDRESS`, so that the database's own views tell where a session comes from. */
static bool add_host(struct client_link *client, struct parameter_draft *draft)
{
	struct registry *registry = link_registry(&client->link);
	const int index = parameter_index(registry->parameters, "application_name");
	const char *name = draft->values.tracked[index];
	char address[ADDRESS_TEXT_SIZE], host[256] = "", text[APPLICATION_NAME_SIZE];
	size_t length, room;

	if (client->link.remote.family == AF_UNIX) {
		gethostname(host, sizeof(host) - 1);
		snprintf(address, sizeof(address), "unix(%d@%.80s):%u", client->link.remote.pid,
			host, client->link.remote.port);
	} else {
		address_text(&client->link.remote, address);
	}
	if (!name)
		name = "app";
	length = strlen(name);
	room = sizeof(text) - strlen(" - ") - strlen(address) - 1;
	/* A name cut within a character is none that a server takes. */
	snprintf(text, sizeof(text), "%.*s - %s", (int)text_utf8_cut(name, length, room), name,
		address);
	return parameter_draft_track(draft, (unsigned)index, text);
}

static bool is_ignored(const struct registry *registry, const char *name, bool in_options)
{
	const char *ignored = registry->settings->ignore_startup_parameters;

	return text_list_has(ignored, name) ||
		(in_options && text_list_has(ignored, "options"));
}

/* What concerns one transaction only has no effect at the start of a session. */
static bool has_no_effect(const char *name)
{
	return strcasecmp(name, "transaction_isolation") == 0 ||
		strcasecmp(name, "transaction_read_only") == 0 ||
		strcasecmp(name, "transaction_deferrable") == 0;
}

/* Does the configuration allow to follow it, and can it be taken back from a session at all? */
static bool may_follow(const struct registry *registry, const char *name)
{
	return registry->settings->startup_parameters == STARTUP_FOLLOW &&
		strcasecmp(name, "seed") != 0;
}

/* The client will have to be told which names stood in its options, if one is not known. */
static enum drafted follow(struct client_link *client, struct parameter_draft *draft,
	const char *name, const char *value, bool in_options)
{
	if (in_options && !buffer_append(&client->login->option_names, name, strlen(name) + 1))
		return DRAFTED_NO_MEMORY;
	return parameter_draft_follow(draft, name, value);
}

/* One setting of the startup message. */
static enum drafted take_setting(struct client_link *client, struct parameter_draft *draft,
	const char *name, const char *value, bool in_options)
{
	const struct registry *registry = link_registry(&client->link);
	const int index = parameter_index(registry->parameters, name);

	if (index >= 0)
		return parameter_draft_track(draft, (unsigned)index, value) ? DRAFTED
									    : DRAFTED_NO_MEMORY;
	if (is_ignored(registry, name, in_options))
		return DRAFTED;
	if (!may_follow(registry, name))
		return DRAFTED_NOT;
	if (has_no_effect(name))
		return DRAFTED;
	return follow(client, draft, name, value, in_options);
}

static struct failure unsupported(
	struct client_link *client, const char *name, const char *value, bool in_options)
{
	link_log_repeated(&client->link, LEVEL_WARNING,
		"unsupported startup parameter%s: %s=%s", in_options ? " in options" : "", name,
		value);
	return failure_of(in_options ? REASON_UNSUPPORTED_STARTUP_PARAMETER_IN_OPTIONS
				     : REASON_UNSUPPORTED_STARTUP_PARAMETER,
		name);
}

/* All settings, as far as they go; false: `why` says what is wrong with them. */
static bool draft_settings(struct client_link *client, struct parameter_draft *draft,
	struct startup_settings *walk, struct failure *why)
{
	enum startup_step step;
	const char *name, *value;

	while ((step = startup_settings_next(walk, &name, &value)) == STARTUP_PARAMETER) {
		switch (take_setting(client, draft, name, value, walk->in_options)) {
		case DRAFTED:
			continue;
		case DRAFTED_NOT:
			*why = unsupported(client, name, value, walk->in_options);
			return false;
		case DRAFTED_NO_MEMORY:
			*why = failure_of(REASON_NO_MEMORY);
			return false;
		}
	}
	*why = failure_of(
		step == STARTUP_BROKEN ? REASON_UNSUPPORTED_OPTIONS : REASON_NO_MEMORY);
	return step == STARTUP_END;
}

/* False: the client was closed for a parameter that is not supported. */
static bool take_settings(struct client_link *client, const struct startup_login *wanted,
	const uint8_t *message, size_t total)
{
	struct registry *registry = link_registry(&client->link);
	struct parameter_draft draft;
	struct startup_settings walk;
	struct parameters *set = NULL;
	struct failure why;
	bool good;

	parameter_draft_begin(&draft, registry->parameters);
	startup_settings_begin(&walk, wanted, message, total);
	good = draft_settings(client, &draft, &walk, &why);
	startup_settings_end(&walk);
	if (good) {
		why = failure_of(REASON_NO_MEMORY);
		good = !registry->settings->application_name_add_host ||
			add_host(client, &draft);
	}
	if (good)
		set = parameter_draft_end(&draft);
	if (!set) {
		parameter_draft_drop(&draft);
		client_close(client, &why);
		return false;
	}
	parameters_unref(client->link.parameters);
	client->link.parameters = set;
	return true;
}

/* A user that nobody knows: it lives as long as the login and can prove nothing. */
static bool take_mock_user(struct client_link *client, const char *name)
{
	const size_t length = strlen(name);
	struct user *mock = calloc(1, sizeof(*mock) + length + 1);

	if (!mock)
		return false;
	memcpy(mock->name, name, length + 1);
	client->login->mock = mock;
	if (!client->user)
		client->user = mock;
	return true;
}

static bool is_admin(const struct registry *registry, const char *name)
{
	return text_list_has(registry->settings->admin_users, name);
}

static bool is_console_user(const struct registry *registry, const char *name)
{
	return is_admin(registry, name) || text_list_has(registry->settings->stats_users, name);
}

/* Users count from here on, refused or not. False: the client was closed. */
static bool count_user(struct client_link *client, struct user *user)
{
	const bool exempt =
		is_console(client) && is_admin(link_registry(&client->link), user->name);

	if (limits_take_user(client, user, exempt))
		return true;
	client_close_for(client, REASON_MAX_USER_CLIENT_CONNECTIONS);
	return false;
}

/* By what is its database configured, be it yet to be made? NULL: there is none. */
static const struct database_config *entry_of(const struct client_link *client)
{
	if (client->database)
		return client->database->config;
	return snapshot_template(link_registry(&client->link)->config);
}

/* False: the database wants its users looked up by a query, and the client was closed. */
static bool check_authority(struct client_link *client, const char *authority)
{
	const struct database_config *entry = entry_of(client);

	if (!entry || !entry->auth_user)
		return true;
	link_log_repeated(&client->link, LEVEL_ERROR,
		"%s can't be used together with database authentication", authority);
	client_close_for(client, REASON_BOUNCER_CONFIG_ERROR);
	return false;
}

/* Whose login is it? False: the client was closed. */
static bool take_user(struct client_link *client, const char *name)
{
	struct registry *registry = link_registry(&client->link);
	const char *authority = auth_authority(client, name);
	struct user *user;

	if (authority && !check_authority(client, authority))
		return false;
	if (registry->settings->auth_type == AUTH_TYPE_ANY && !is_console(client)) {
		const char *forced = client->database ? client->database->config->user : NULL;

		if (!forced) {
			link_log_repeated(&client->link, LEVEL_ERROR,
				"auth_type=any requires forced user");
			client_close_for(client, REASON_BOUNCER_CONFIG_ERROR);
			return false;
		}
		name = forced;
	}
	user = registry_find_user(registry, name);
	if (user &&
		(user->secret || user->config || authority ||
			registry->settings->auth_type == AUTH_TYPE_ANY)) {
		if (!count_user(client, user))
			return false;
	} else if (!take_mock_user(client, name)) {
		client_close_for(client, REASON_NO_MEMORY);
		return false;
	}
	if (!auth_is_known(client) && !authority &&
		registry->settings->auth_type != AUTH_TYPE_ANY)
		link_log_repeated(&client->link, LEVEL_LOG, "no such user: %s", name);
	return true;
}

/* The operator at the machine itself: same uid, over the Unix socket, as user pgbouncer. */
static bool is_local_superuser(struct client_link *client, const char *user)
{
	struct ucred peer;

	if (!is_console(client) || client->link.remote.family != AF_UNIX ||
		strcmp(user, "pgbouncer") != 0)
		return false;
	client_greeting_identify_peer(client, &peer);
	return peer.uid == getuid();
}

static void log_attempt(const struct client_link *client, const char *user)
{
	static const char *const words[] = {
		[REPLICATION_NONE] = "no",
		[REPLICATION_LOGICAL] = "database",
		[REPLICATION_PHYSICAL] = "yes",
	};
	const char *replication = words[client->replication];
	char text[TLS_TEXT_SIZE];
	const char *tls = text;

	if (!link_registry(&client->link)->settings->log_connections)
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

/* Where the console's rights come from. False: the client was closed. */
static bool check_console_rights(struct client_link *client, const char *user)
{
	const struct registry *registry = link_registry(&client->link);

	if (!is_console(client))
		return true;
	client->admin = is_admin(registry, user);
	/* Names unknown to us go through an exchange that fails, as everywhere. */
	if (registry->settings->auth_type == AUTH_TYPE_ANY || is_console_user(registry, user) ||
		(!auth_is_known(client) && !auth_authority(client, user)))
		return true;
	client_close_for(client, REASON_NOT_ALLOWED);
	return false;
}

static void begin_authentication(struct client_link *client)
{
	const struct settings *settings = link_registry(&client->link)->settings;

	client->login->method = auth_method_of(settings->auth_type);
	client_login_proceed(client, client->login->method->begin(client));
}

/* The pool is known by now if both names are, so that the log can tell them. */
static void note_pool(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	struct user *user;

	if (!client->database || !auth_is_known(client) || client->login->mock == client->user)
		return;
	if (is_console(client)) {
		client->link.pool = registry->console_pool;
		return;
	}
	user = registry_server_user(registry, client->database, client->user);
	if (user)
		client->link.pool = registry_find_pool(client->database, user);
}

/* False: the client was closed. */
static bool take_database(struct client_link *client, const char *user)
{
	struct registry *registry = link_registry(&client->link);
	const char *name = client->login->database_name;
	struct database *database = registry_find_database(registry, name);

	if (!database && strcmp(name, "pgusher") == 0)
		database = registry->console_pool->database;
	if (!database)
		/* With auth_type=any the entry says who the client is, so it is needed now. */
		return registry->settings->auth_type != AUTH_TYPE_ANY ||
			open_database(client) || client->link.state != CLIENT_CLOSED;
	if (limits_take_database(
		    client, database, database->console && is_admin(registry, user)))
		return true;
	if (is_local_superuser(client, user))
		return true;
	client_close_for(client, REASON_MAX_DB_CLIENT_CONNECTIONS);
	return false;
}

/* --- users who stand in no file ----------------------------------------------------------- */

/* Whoever is let in by somebody else's word needs no secret of ours. */
static bool needs_secret(const struct client_link *client, const char *name)
{
	return link_registry(&client->link)->settings->auth_type != AUTH_TYPE_ANY &&
		!auth_authority(client, name);
}

static bool has_to_be_looked_up(const struct client_link *client, const char *name)
{
	const struct registry *registry = link_registry(&client->link);
	const struct user *user = registry_find_user(registry, name);
	const struct database_config *entry = entry_of(client);

	return needs_secret(client, name) && (!user || !user->secret) && entry &&
		auth_query_user(registry, entry);
}

/* Until it is known who he is, a user with an entry of his own counts by the name he gave. */
static void look_up(struct client_link *client, const char *name)
{
	struct user *user = registry_find_user(link_registry(&client->link), name);

	if (user && user->config ? !count_user(client, user) : !take_mock_user(client, name)) {
		if (client->link.state != CLIENT_CLOSED)
			client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	auth_query_begin(client, name);
}

/*
 * The same secret as the pool has shares what was made of it; another one takes its place there
 * now, so that what a client has proved against the old one opens nothing any more.
 */
static struct credential *settle_credential(
	const struct client_link *client, struct credential *fetched)
{
	struct pool *pool = NULL;

	if (client->database && !client->database->config->user)
		pool = registry_find_pool(client->database, client->user);
	if (!pool || !pool->credential)
		return credential_ref(fetched);
	if (!credential_equal(pool->credential, fetched))
		pool_set_credential(pool, fetched);
	return credential_ref(pool->credential);
}

/* Who it is has been settled: now the rights, then the proof. */
static void go_on(struct client_link *client, const char *name)
{
	note_pool(client);
	log_attempt(client, name);
	if (check_console_rights(client, name))
		begin_authentication(client);
}

void client_login_found(
	struct client_link *client, const char *name, struct credential *credential)
{
	struct user *user = registry_open_user(link_registry(&client->link), name);

	client_enter(client, CLIENT_AUTHENTICATING);
	client_limits_start(client);
	if (!user) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	if (!count_user(client, user))
		return;
	client->login->credential = settle_credential(client, credential);
	go_on(client, name);
	client_greeting_resume(client);
}

/* --- the order of it all ------------------------------------------------------------------ */

static void log_in(struct client_link *client, const struct startup_login *wanted)
{
	struct registry *registry = link_registry(&client->link);

	if (!take_database(client, wanted->user))
		return;
	if (is_local_superuser(client, wanted->user)) {
		client->user = registry->console_pool->user;
		client->link.pool = registry->console_pool;
		client->admin = true;
		if (registry->settings->log_connections)
			link_log(&client->link, LEVEL_LOG, "pgbouncer access from unix socket");
		open_console(client);
		return;
	}
	if (strlen(wanted->user) > CLIENT_USER_NAME_MAX) {
		if (registry->settings->log_connections)
			link_log_repeated(&client->link, LEVEL_LOG,
				"login failed: db=%s user=%.128s", client->login->database_name,
				wanted->user);
		client_close_for(client, REASON_USERNAME_TOO_LONG);
		return;
	}
	/* The query may have to run in a database that is yet to be made. */
	if (has_to_be_looked_up(client, wanted->user) && open_database(client))
		look_up(client, wanted->user);
	else if (client->link.state != CLIENT_CLOSED && take_user(client, wanted->user))
		go_on(client, wanted->user);
}

/* Is the client one too many? Those who have said nothing yet go before those who have. */
static bool is_admitted(struct client_link *client, bool console)
{
	struct registry *registry = link_registry(&client->link);

	while (!limits_allow_client(registry, console)) {
		if (!shedding_drop_one(registry, client, CLIENT_REJECTED_MAX_CLIENT_CONN))
			return false;
	}
	return true;
}

static bool names_console(const struct registry *registry, const char *name)
{
	return strcmp(name, "pgbouncer") == 0 ||
		(strcmp(name, "pgusher") == 0 && !registry_find_database(registry, name));
}

/* What a client gets that asks for a newer protocol, or for options that we do not know. */
static bool negotiate(struct client_link *client, const struct startup_login *wanted,
	const uint8_t *message, size_t total)
{
	struct buffer out;
	bool good = true;

	buffer_init(&out);
	if (startup_write_negotiation(&out, wanted, message, total))
		good = !out.failed &&
			stream_send_bytes(&client->link.stream, out.data, out.length) !=
				STREAM_SENT_NOT;
	buffer_free(&out);
	if (!good)
		client_close_for(client, REASON_UNEXPECTED_EOF);
	return good;
}

static bool begin_login(struct client_link *client, const struct startup_login *wanted)
{
	struct login *login = calloc(1, sizeof(*login));

	if (!login)
		return false;
	client->login = login;
	login->version = startup_version_spoken(wanted->version);
	buffer_init_secret(&login->final);
	login->database_name = strdup(wanted->database);
	return login->database_name != NULL;
}

/* Over a network that is not to be trusted. */
static bool must_encrypt(const struct client_link *client)
{
	return link_registry(&client->link)->settings->client_tls_sslmode >= TLS_MODE_REQUIRE &&
		client->link.remote.family != AF_UNIX && !client->link.stream.tls;
}

void client_login_begin(struct client_link *client, const uint8_t *message, size_t total)
{
	const struct registry *registry = link_registry(&client->link);
	struct startup_login wanted;

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
	if (must_encrypt(client)) {
		client_close_for(client, REASON_SSL_REQUIRED);
		return;
	}
	client_enter(client, CLIENT_AUTHENTICATING);
	if (!begin_login(client, &wanted) || !replication_want(client, &wanted)) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	if (!take_settings(client, &wanted, message, total))
		return;
	if (!is_admitted(client, names_console(registry, wanted.database))) {
		client_close_for(client, REASON_MAX_CLIENT_CONN);
		return;
	}
	if (negotiate(client, &wanted, message, total))
		log_in(client, &wanted);
}

void client_login_password(struct client_link *client, const uint8_t *body, size_t length)
{
	struct login *login = client->login;

	/* While a method waits for something else, or for none of the client's words. */
	if (!login->method || !login->method->answer) {
		client_close_for(client, REASON_BAD_PACKET);
		return;
	}
	/* A password message with nothing in it, whatever was asked for. */
	if ((length == 0 || (length == 1 && body[0] == '\0')) && !login->answered_first) {
		login->refusal = REASON_EMPTY_PASSWORD;
		client_login_proceed(client, AUTH_REFUSED);
		return;
	}
	client_login_proceed(client, login->method->answer(client, body, length));
}
