/* SPDX-License-Identifier: ISC */
#include "model/statistics/client_group.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/pool.h"
#include "model/registry.h"

static const char *application_name(const struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);
	const int index = parameter_index(registry->parameters, "application_name");
	const char *name = NULL;

	if (client->link.parameters && index >= 0)
		name = parameters_get(client->link.parameters, (unsigned)index);
	return name ? name : "";
}

static struct client_group *find(const struct pool *pool, const char *name, unsigned *count)
{
	*count = 0;
	for (struct client_group *group = pool->groups; group; group = group->next) {
		if (strcmp(group->application_name, name) == 0)
			return group;
		++*count;
	}
	return NULL;
}

static struct client_group *open_group(struct pool *pool, const char *full_name)
{
	char name[CLIENT_GROUP_NAME_SIZE];
	struct client_group *group;
	unsigned count;

	text_copy(name, sizeof(name), full_name);
	group = find(pool, name, &count);
	if (!group && count >= CLIENT_GROUP_NAMES) {
		text_copy(name, sizeof(name), "other");
		group = find(pool, name, &count);
	}
	if (group)
		return group;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	memcpy(group->application_name, name, sizeof(name));
	group->next = pool->groups;
	pool->groups = group;
	return group;
}

void client_group_leave(struct client_link *client)
{
	struct client_group *group = client->group;
	struct client_group **at;

	if (!group)
		return;
	if (client->link.state != CLIENT_CLOSED)
		group->clients[client->link.state]--;
	client->group = NULL;
	if (--group->members > 0)
		return;
	for (at = &client->link.pool->groups; *at != group; at = &(*at)->next)
		;
	*at = group->next;
	free(group);
}

void client_group_join(struct client_link *client)
{
	struct client_group *group = open_group(client->link.pool, application_name(client));

	if (group == client->group)
		return;
	if (group)
		group->members++;
	client_group_leave(client);
	client->group = group;
	if (group)
		group->clients[client->link.state]++;
}
