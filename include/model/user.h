/* SPDX-License-Identifier: ISC */
/*
 * A user known to the daemon: from the auth_file, from [users], because a database forces it, or
 * for as long as somebody is logged in who was looked up elsewhere.
 *
 * Owned by the registry. Its secret is the auth_file's text, lent by the snapshot in force; what
 * was derived from a secret is dropped with it. Secrets from elsewhere are credentials.
 */
#ifndef PGUSHER_MODEL_USER_H
#define PGUSHER_MODEL_USER_H

#include <stdbool.h>

#include "config/snapshot.h"
#include "model/credential.h"
#include "model/database.h"

struct user {
	UT_hash_handle by_name;
	uint64_t handle; /* as a pool's */
	const struct user_config *config; /* its [users] entry, or NULL */
	const char *secret; /* from the auth_file; NULL: not in it */
	struct user_keys *keys; /* NULL until needed; counted */
	struct pool_list pools; /* with it as server user */
	unsigned servers; /* connections of all those pools */
	unsigned clients; /* logged in or logging in under its name */
	unsigned derivations; /* under way for its servers, which will look for it */
	bool forced; /* a database's configuration names it */
	char name[];
};

/* Give it the secret that the auth_file has now (or NULL): derived keys of another are wiped. */
void user_set_secret(struct user *user, const char *secret);

/* The keys that belong to its secret, made if need be; NULL when there is no memory. */
struct user_keys *user_keys(struct user *user);

/* Let go of its keys. */
void user_drop_keys(struct user *user);

/* Does anything still need it, or name it? */
bool user_is_needed(const struct user *user);

int user_max_servers(const struct user *user, const struct settings *settings);
int user_max_clients(const struct user *user, const struct settings *settings);

#endif
