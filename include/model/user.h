/* SPDX-License-Identifier: ISC */
/*
 * A user known to the daemon: from the auth_file, from [users], or because a database forces it.
 *
 * Owned by the registry. Its secret is the auth_file's text, lent by the snapshot in force; what
 * was derived from a secret is dropped with it.
 */
#ifndef PGUSHER_MODEL_USER_H
#define PGUSHER_MODEL_USER_H

#include <stdbool.h>

#include "config/snapshot.h"
#include "crypt/scram.h"
#include "model/database.h"

/* What a secret is; auth_file rules: an unusual spelling makes it a plain password. */
enum secret_kind { SECRET_NONE, SECRET_EMPTY, SECRET_PLAIN, SECRET_MD5, SECRET_SCRAM };

/* Keys derived from, or proved against, the present secret. */
struct user_keys {
	struct scram_secret verifier; /* to check clients with */
	struct scram_keys keys;
	bool verifier_known; /* parsed from a SCRAM secret, or derived from a plain one */
	bool client_key_known; /* a client proved it against a SCRAM secret: can log in to servers */
};

struct user {
	UT_hash_handle by_name;
	const struct user_config *config; /* its [users] entry, or NULL */
	const char *secret; /* from the auth_file; NULL: not in it */
	struct user_keys *keys; /* NULL until needed */
	struct pool_list pools; /* with it as server user */
	unsigned servers; /* connections of all those pools */
	unsigned clients; /* logged in or logging in under its name */
	char name[];
};

/* What kind of secret a text is. */
enum secret_kind secret_kind(const char *secret);

/* Give it the secret that the auth_file has now (or NULL): derived keys of another are wiped. */
void user_set_secret(struct user *user, const char *secret);

/* The keys that belong to its secret, made if need be; NULL when there is no memory. */
struct user_keys *user_keys(struct user *user);

/* Wipe and free its keys. */
void user_drop_keys(struct user *user);

int user_max_servers(const struct user *user, const struct settings *settings);
int user_max_clients(const struct user *user, const struct settings *settings);

#endif
