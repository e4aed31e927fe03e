/* SPDX-License-Identifier: ISC */
/*
 * A user: from the auth_file, from [users], from the configuration of a database, or known from
 * elsewhere while a client of that name is connected.
 *
 * The registry owns the users. The secret is a text of the auth_file, owned by the current
 * snapshot; keys derived from a secret are dropped with it. Secrets from elsewhere are in
 * credentials (model/credential).
 */
#ifndef PGUSHER_MODEL_USER_H
#define PGUSHER_MODEL_USER_H

#include <stdbool.h>

#include "config/snapshot.h"
#include "model/credential.h"
#include "model/database.h"

struct user {
	UT_hash_handle by_name;
	uint64_t handle; /* in process.handles; 0: none yet */
	const struct user_config *config; /* its [users] entry, or NULL */
	const char *secret; /* from the auth_file; NULL: not in it */
	struct user_keys *keys; /* NULL until needed; a reference */
	struct pool_list pools; /* pools that log in to servers as this user */
	unsigned
		auto_pools; /* of its pools, with pool_size = auto: counted by pool/auto_size */
	struct cap cap; /* of the servers of all these pools */
	unsigned clients; /* that log in, or are logged in, as this user */
	bool forced; /* the configuration of a database names it */
	char name[];
};

/* Set the secret of the auth_file, or NULL; its keys are dropped if the secret has changed. */
void user_set_secret(struct user *user, const char *secret);

/* Returns the keys of its secret, which it owns and makes if necessary; NULL: out of memory. */
struct user_keys *user_keys(struct user *user);

/* Drop its reference to the keys. */
void user_drop_keys(struct user *user);

/* Returns whether the configuration names the user, or clients or pools need it. */
bool user_is_needed(const struct user *user);

/* Return the limits that apply to the user: of its [users] entry, else of the settings. */
int user_max_servers(const struct user *user, const struct settings *settings);
int user_max_clients(const struct user *user, const struct settings *settings);

/*
 * Return how many servers, and clients, there are of the user of this name at all workers; each worker
 * has a struct user of its own. Any of these may be asked, by its worker.
 */
static inline unsigned user_servers(const struct user *user)
{
	return cap_servers(&user->cap);
}

unsigned user_clients(const struct user *user);

#endif
