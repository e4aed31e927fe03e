/* SPDX-License-Identifier: ISC */
#include "session/login/client_identity.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "session/auth/exchange.h"
#include "session/auth/method.h"
#include "session/link/close.h"
#include "session/link/peer_credentials.h"
#include "session/lookup/auth_query.h"

bool client_identity_is_console(const struct client_link *client)
{
	return client->database && client->database->console;
}

static bool is_admin(const struct registry *registry, const char *name)
{
	return text_list_has(registry->process->settings->admin_users, name);
}

static bool is_console_user(const struct registry *registry, const char *name)
{
	return is_admin(registry, name) ||
		text_list_has(registry->process->settings->stats_users, name);
}

/* --- the database ------------------------------------------------------------------------- */

bool client_identity_open_database(struct client_link *client)
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

bool client_identity_is_operator(struct client_link *client, const char *user)
{
	struct ucred peer;

	if (!client_identity_is_console(client) || client->link.remote.family != AF_UNIX ||
		strcmp(user, "pgbouncer") != 0)
		return false;
	peer_credentials_read(client, &peer);
	return peer.uid == getuid();
}

bool client_identity_take_database(struct client_link *client, const char *user)
{
	struct registry *registry = link_registry(&client->link);
	const char *name = client->login->database_name;
	struct database *database = registry_find_database(registry, name);

	/* A database of this name, which has brought the client here, may be gone since. */
	if (!database && strcmp(name, "pgusher") == 0 && registry->number == 0)
		database = registry->console_pool->database;
	if (!database)
		/*
		 * With auth_type=any the user is the database's forced user: it is needed now.
		 */
		return registry->process->settings->auth_type != AUTH_TYPE_ANY ||
			client_identity_open_database(client) ||
			client->link.state != CLIENT_CLOSED;
	if (limits_take_database(
		    client, database, database->console && is_admin(registry, user)))
		return true;
	if (client_identity_is_operator(client, user))
		return true;
	client_close_for(client, REASON_MAX_DB_CLIENT_CONNECTIONS);
	return false;
}

/*
 * The configuration of the client's database, also if the database is automatic and not made
 * yet. NULL: there is no such database.
 */
static const struct database_config *database_config_of(const struct client_link *client)
{
	if (client->database)
		return client->database->config;
	return snapshot_template(link_registry(&client->link)->process->config);
}

/* --- the user ----------------------------------------------------------------------------- */

bool client_identity_take_mock(struct client_link *client, const char *name)
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

bool client_identity_count(struct client_link *client, struct user *user)
{
	const bool exempt = client_identity_is_console(client) &&
		is_admin(link_registry(&client->link), user->name);

	if (limits_take_user(client, user, exempt))
		return true;
	client_close_for(client, REASON_MAX_USER_CLIENT_CONNECTIONS);
	return false;
}

/*
 * Returns false when the database has an auth_user, which excludes external methods (LDAP,
 * PAM); the client was closed then.
 */
static bool allows_external_method(struct client_link *client, const char *method)
{
	const struct database_config *config = database_config_of(client);

	if (!config || !config->auth_user)
		return true;
	link_log_repeated(&client->link, LEVEL_ERROR,
		"%s can't be used together with database authentication", method);
	client_close_for(client, REASON_BOUNCER_CONFIG_ERROR);
	return false;
}

bool client_identity_take_user(struct client_link *client, const char *name)
{
	struct registry *registry = link_registry(&client->link);
	const char *external = auth_external_name(client, name);
	struct user *user;

	if (external && !allows_external_method(client, external))
		return false;
	if (registry->process->settings->auth_type == AUTH_TYPE_ANY &&
		!client_identity_is_console(client)) {
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
		(user->secret || user->config || external ||
			registry->process->settings->auth_type == AUTH_TYPE_ANY)) {
		if (!client_identity_count(client, user))
			return false;
	} else if (!client_identity_take_mock(client, name)) {
		client_close_for(client, REASON_NO_MEMORY);
		return false;
	}
	if (!exchange_is_known(client) && !external &&
		registry->process->settings->auth_type != AUTH_TYPE_ANY)
		link_log_repeated(&client->link, LEVEL_LOG, "no such user: %s", name);
	return true;
}

/* External methods and auth_type=any check no secret here. */
static bool needs_secret(const struct client_link *client, const char *name)
{
	return link_registry(&client->link)->process->settings->auth_type != AUTH_TYPE_ANY &&
		!auth_external_name(client, name);
}

bool client_identity_needs_lookup(const struct client_link *client, const char *name)
{
	const struct registry *registry = link_registry(&client->link);
	const struct user *user = registry_find_user(registry, name);
	const struct database_config *config = database_config_of(client);

	return needs_secret(client, name) && (!user || !user->secret) && config &&
		auth_query_user(registry, config);
}

bool client_identity_check_rights(struct client_link *client, const char *user)
{
	const struct registry *registry = link_registry(&client->link);

	if (!client_identity_is_console(client))
		return true;
	client->admin = is_admin(registry, user);
	/* Unknown users go through authentication and fail there, as for other databases. */
	if (registry->process->settings->auth_type == AUTH_TYPE_ANY ||
		is_console_user(registry, user) ||
		(!exchange_is_known(client) && !auth_external_name(client, user)))
		return true;
	client_close_for(client, REASON_NOT_ALLOWED);
	return false;
}
