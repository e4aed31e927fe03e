/* SPDX-License-Identifier: ISC */
/*
 * Credentials: secrets that do not come from the auth_file, but from auth_query or from the
 * client itself. And keys that are derived from any secret, also one of the auth_file.
 *
 * Both have reference counts. A credential is referenced by the logins that it belongs to, and
 * by the pool that logs in to servers with it. Secrets and keys are wiped with the last
 * reference.
 */
#ifndef PGUSHER_MODEL_CREDENTIAL_H
#define PGUSHER_MODEL_CREDENTIAL_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>

#include "crypt/scram.h"

/*
 * Kinds of secrets. As in the auth_file, a text that is not exactly MD5 or SCRAM is a password.
 */
enum secret_kind { SECRET_NONE, SECRET_EMPTY, SECRET_PLAIN, SECRET_MD5, SECRET_SCRAM };

struct login;

TAILQ_HEAD(login_list, login);

/*
 * Keys derived from one secret, or received in an exchange that it verified. They have a
 * reference count, since a derivation on a thread may outlast their owner.
 */
struct user_keys {
	unsigned references;
	struct scram_secret verifier; /* verifies clients */
	struct scram_keys keys;
	bool is_scram; /* the secret is a SCRAM secret */
	bool verifier_known; /* parsed from a SCRAM secret, or derived from a password */
	struct login_list waiting; /* logins that wait until the verifier is derived */
	bool client_key_known; /* received from a client that passed: usable for servers */
};

struct credential {
	unsigned references;
	struct user_keys *keys; /* NULL until needed; a reference */
	bool is_password; /* sent by a client: plain even if it looks like MD5 */
	size_t size; /* of the text, with its NUL */
	char secret[]; /* empty: no secret, any password is wrong */
};

/* Returns the kind of a secret; NULL is SECRET_NONE. */
enum secret_kind secret_kind(const char *secret);

/* Make keys for this secret, with one reference, the caller's. NULL when out of memory. */
struct user_keys *user_keys_new(const char *secret);

/* Take another reference; returns the keys. */
struct user_keys *user_keys_ref(struct user_keys *keys);

/* Drop a reference; the last one wipes and frees the keys. NULL is allowed. */
void user_keys_unref(struct user_keys *keys);

/*
 * Copy a secret of `length` bytes, without a NUL, into a new credential with one reference, the
 * caller's. Returns NULL when out of memory.
 */
struct credential *credential_new(const void *secret, size_t length);

/* Take another reference; returns the credential. */
struct credential *credential_ref(struct credential *credential);

/*
 * Drop a reference; the last one wipes and frees the credential and its keys. NULL is allowed.
 */
void credential_unref(struct credential *credential);

/* Returns its keys, which it owns and makes if necessary; NULL when out of memory. */
struct user_keys *credential_keys(struct credential *credential);

/*
 * Returns whether both have the same secret; in constant time for secrets of the same length.
 */
bool credential_equal(const struct credential *a, const struct credential *b);

#endif
