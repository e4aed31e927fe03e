/* SPDX-License-Identifier: ISC */
/*
 * Counts of clients by database, user, application_name and state. They are updated when a
 * state changes, so that readers need not walk the clients.
 *
 * A client points to its group; a pool owns its groups. Clients choose their application_name:
 * after CLIENT_GROUP_NAMES of them in one pool, the clients with other names share the group
 * `other`.
 */
#ifndef PGUSHER_MODEL_STATISTICS_CLIENT_GROUP_H
#define PGUSHER_MODEL_STATISTICS_CLIENT_GROUP_H

#include "model/client_link.h"

enum { CLIENT_GROUP_NAMES = 100, CLIENT_GROUP_NAME_SIZE = 64 };

struct client_group {
	struct client_group *next; /* in the same pool */
	unsigned clients[CLIENT_STATES]; /* number of clients in each state */
	unsigned members; /* the group is freed with its last member */
	char application_name[CLIENT_GROUP_NAME_SIZE];
};

/*
 * Move the client to the group of its pool for its application_name, which is made if
 * necessary; its old group may be freed. When out of memory the client is in no group.
 */
void client_group_join(struct client_link *client);

/*
 * Remove the client from its group, which is freed with its last member. Allowed without a
 * group.
 */
void client_group_leave(struct client_link *client);

#endif
