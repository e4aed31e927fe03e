/* SPDX-License-Identifier: ISC */
#include "session/parameters/followed.h"

#include "session/relay/relay_rules.h"
#include "wire/parameters.h"

static struct parameter_table *table_of(const struct server_link *server)
{
	return link_registry(&server->link)->parameters;
}

bool followed_forget(struct server_link *server)
{
	struct parameter_table *table = table_of(server);
	struct parameters *none = parameters_empty(table);
	const bool good = link_take_parameters(
		&server->link, parameters_follow(table, server->link.parameters, none));

	parameters_unref(none);
	server->follows = false;
	return good;
}

bool followed_note_discard(struct server_link *server, struct client_link *client)
{
	struct parameter_table *table = table_of(server);
	struct parameters *none, *set;

	if (parameters_has_followed(server->link.parameters) && !followed_forget(server))
		return false;
	if (!client || !parameters_has_followed(client->link.parameters))
		return true;
	none = parameters_empty(table);
	set = parameters_follow(
		table, client->link.parameters, client->asked ? client->asked : none);
	parameters_unref(none);
	return link_take_parameters(&client->link, set);
}

/* Note that followed parameters may have changed: they are set for the next client. */
static bool note_unknown(struct server_link *server)
{
	server->follows = false;
	return link_take_parameters(
		&server->link, parameters_doubt(table_of(server), server->link.parameters));
}

bool followed_note_command(const struct relay_run *run)
{
	struct server_link *server = run->server;

	/*
	 * The rest of the client's transaction or session runs without its followed parameters.
	 */
	if (relay_has_tag(run, "DISCARD ALL"))
		return followed_forget(server);
	if (relay_has_tag(run, "SET") || relay_has_tag(run, "RESET"))
		return note_unknown(server);
	return true;
}

/*
 * Is this a report of what the client's query has SET, not of a change in the server's
 * configuration? Servers send reports before ReadyForQuery, behind all answers of the query.
 */
static bool is_of_a_set(const struct server_link *server, const struct client_link *client)
{
	return client->query_start != 0 && server->altered_by == client->query_start;
}

/* The client has SET a reported parameter that is not tracked: follow it from now on. */
static bool follow_set(
	struct server_link *server, const char *name, const char *value, bool later)
{
	struct parameter_table *table = table_of(server);
	struct link *client = server->link.peer;
	char lower[PARAMETER_NAME_SIZE];

	parameter_name_lower(name, lower);
	server->follows = true;
	if (!later &&
		!link_take_parameters(client,
			parameters_follow_also(table, client->parameters, lower, value)))
		return false;
	return link_take_parameters(&server->link,
		parameters_follow_also(table, server->link.parameters, lower, value));
}

bool followed_note_status(
	const struct relay_run *run, const char *name, const char *value, bool later)
{
	struct parameter_table *table = table_of(run->server);
	struct link *server = &run->server->link, *client = server->peer;

	if (!client)
		return true;
	if (!parameters_get_followed(client->parameters, name))
		return !parameter_follows_its_set(name) ||
			!is_of_a_set(run->server, run->client) ||
			follow_set(run->server, name, value, later);
	if (!later &&
		!link_take_parameters(
			client, parameters_refollow(table, client->parameters, name, value)))
		return false;
	return link_take_parameters(
		server, parameters_refollow(table, server->parameters, name, value));
}
