/* SPDX-License-Identifier: ISC */
#include "model/limits.h"

#include "base/lock.h"
#include "model/registry.h"

/* A limit of 0 or less means no limit. */
static bool within(unsigned count, int limit)
{
	return limit <= 0 || count <= (unsigned)limit;
}

void limits_take_socket(struct registry *registry)
{
	SHARED_ADD(registry->process->limits.clients, 1);
}

void limits_give_socket(struct registry *registry)
{
	SHARED_TAKE(registry->process->limits.clients, 1);
}

bool limits_allow_client(const struct registry *registry, bool console)
{
	/* Unlike the other limits this one has no value for "unlimited". */
	return console ||
		(int64_t)SHARED_GET(registry->process->limits.clients) <=
		registry->process->settings->max_client_conn;
}

void limits_admit_client(struct client_link *client, bool console)
{
	struct limits *limits = &link_registry(&client->link)->process->limits;

	client->counted_in_process = true;
	client->counted_in_consoles = console;
	SHARED_ADD(limits->admitted, 1);
	if (console)
		SHARED_ADD(limits->consoles, 1);
}

bool limits_take_database(struct client_link *client, struct database *database, bool exempt)
{
	const struct registry *registry = link_registry(&client->link);

	client->database = database;
	client->counted_in_database = true;
	database->clients++;
	return exempt ||
		within(database->clients,
			database_max_clients(database, registry->process->settings));
}

static void give_user(struct client_link *client, struct user *user)
{
	user->clients--;
	if (user->cap.share)
		SHARED_TAKE(user->cap.share->tally->clients, 1);
	registry_let_go_user(link_registry(&client->link), user);
}

bool limits_take_user(struct client_link *client, struct user *user, bool exempt)
{
	const struct registry *registry = link_registry(&client->link);
	struct user *counted = client->counted_in_user ? client->user : NULL;
	unsigned clients;

	client->user = user;
	client->counted_in_user = true;
	user->clients++;
	clients =
		user->cap.share ? SHARED_NEXT(user->cap.share->tally->clients) : user->clients;
	clients -= counted == user;
	if (counted)
		give_user(client, counted);
	return exempt || within(clients, user_max_clients(user, registry->process->settings));
}

static void give_process(struct client_link *client)
{
	struct limits *limits = &link_registry(&client->link)->process->limits;

	SHARED_TAKE(limits->admitted, 1);
	if (client->counted_in_consoles)
		SHARED_TAKE(limits->consoles, 1);
	client->counted_in_process = client->counted_in_consoles = false;
}

void limits_give_client(struct client_link *client)
{
	if (client->counted_in_process)
		give_process(client);
	if (client->counted_in_user) {
		client->counted_in_user = false;
		give_user(client, client->user);
		client->user = NULL;
	}
	if (client->counted_in_database) {
		client->counted_in_database = false;
		client->database->clients--;
		if (client->database->gone && client->database->clients == 0)
			registry_drop_database(client->database);
	}
}
