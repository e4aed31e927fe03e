/* SPDX-License-Identifier: ISC */
#include "session/followed.h"

#include <string.h>

#include "wire/parameters.h"

/* False: there is no new set. */
static bool replace(struct link *link, struct parameters *set)
{
	if (!set)
		return false;
	parameters_unref(link->parameters);
	link->parameters = set;
	return true;
}

static struct parameter_table *table_of(const struct server_link *server)
{
	return link_registry(&server->link)->parameters;
}

bool followed_forget(struct server_link *server)
{
	struct parameter_table *table = table_of(server);
	struct parameters *none = parameters_empty(table);
	const bool good =
		replace(&server->link, parameters_follow(table, server->link.parameters, none));

	parameters_unref(none);
	server->follows = false;
	return good;
}

/* Its next client finds other parameters than its own, and they are set. */
static bool doubt(struct server_link *server)
{
	server->follows = false;
	return replace(
		&server->link, parameters_doubt(table_of(server), server->link.parameters));
}

static bool is_tag(const struct relay_run *run, const char *tag)
{
	const size_t size = strlen(tag) + 1;

	return run->frame.total == FRAME_HEADER_SIZE + size && run->whole &&
		memcmp(run->at + FRAME_HEADER_SIZE, tag, size) == 0;
}

bool followed_note_command(const struct relay_run *run)
{
	struct server_link *server = run->server;

	/* A client's DISCARD ALL is followed by the rest of its own transaction or session. */
	if (is_tag(run, "DISCARD ALL"))
		return followed_forget(server);
	if (is_tag(run, "SET") || is_tag(run, "RESET"))
		return doubt(server);
	return true;
}

bool followed_note_status(const struct relay_run *run, const char *name, const char *value)
{
	struct parameter_table *table = table_of(run->server);
	struct link *server = &run->server->link, *client = server->peer;

	if (!client || !parameters_get_followed(client->parameters, name))
		return true;
	return replace(client, parameters_refollow(table, client->parameters, name, value)) &&
		replace(server, parameters_refollow(table, server->parameters, name, value));
}
