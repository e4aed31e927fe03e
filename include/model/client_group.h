/* SPDX-License-Identifier: ISC */
/*
 * Counts of clients by database, user, application_name and state, kept as states change, so
 * that no reader ever has to walk the clients.
 *
 * A client points at its group. Application names are chosen by clients: beyond a hundred of
 * them for one (database, user) the rest share the group `other`.
 */
#ifndef PGUSHER_MODEL_CLIENT_GROUP_H
#define PGUSHER_MODEL_CLIENT_GROUP_H

#include "model/client_link.h"

enum { CLIENT_GROUP_NAMES = 100, CLIENT_GROUP_NAME_SIZE = 64 };

struct client_group {
	struct client_group *next; /* of the same pool */
	unsigned clients[CLIENT_STATES];
	unsigned members; /* the group goes with its last member */
	char application_name[CLIENT_GROUP_NAME_SIZE];
};

/*
 * Put the client into the group of its pool that its application_name names, taking it out of
 * the one it was in. Without memory it stays outside of all groups.
 */
void client_group_join(struct client_link *client);

/* Take it out; the last one frees the group. */
void client_group_leave(struct client_link *client);

#endif
