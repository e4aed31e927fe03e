/* SPDX-License-Identifier: ISC */
/*
 * A secret that stands in no file of ours: it was told to one login, by a query or by the client
 * itself. And what can be made of any secret, theirs or the auth_file's.
 *
 * A credential is counted: by the logins that it was told to, and by the pool that logs in to
 * servers with it. Both it and keys are wiped when the last holder lets go.
 */
#ifndef PGUSHER_MODEL_CREDENTIAL_H
#define PGUSHER_MODEL_CREDENTIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "crypt/scram.h"

/* What a secret is; auth_file rules: an unusual spelling makes it a plain password. */
enum secret_kind { SECRET_NONE, SECRET_EMPTY, SECRET_PLAIN, SECRET_MD5, SECRET_SCRAM };

/* Keys derived from, or proved against, one secret. Counted, since derivations take their time. */
struct user_keys {
	unsigned references;
	struct scram_secret verifier; /* to check clients with */
	struct scram_keys keys;
	bool is_scram; /* the secret is a SCRAM secret */
	bool verifier_known; /* parsed from a SCRAM secret, or derived from a plain one */
	bool client_key_known; /* a client proved it against a SCRAM secret: can log in to servers */
};

struct credential {
	unsigned references;
	struct user_keys *keys; /* NULL until needed; counted */
	bool is_password; /* a client typed it: it is plain, whatever it looks like */
	size_t size; /* of the text, with its NUL */
	char secret[]; /* empty: there is none, and no password is right */
};

/* What kind of secret a text is. */
enum secret_kind secret_kind(const char *secret);

/* The keys for this secret, counted for the caller; NULL when there is no memory. */
struct user_keys *user_keys_new(const char *secret);
struct user_keys *user_keys_ref(struct user_keys *keys);

/* NULL is allowed. */
void user_keys_unref(struct user_keys *keys);

/* A secret of so many bytes, without a NUL; counted for the caller. NULL: no memory. */
struct credential *credential_new(const void *secret, size_t length);
struct credential *credential_ref(struct credential *credential);

/* NULL is allowed. */
void credential_unref(struct credential *credential);

/* Its keys, made if need be and lent; NULL when there is no memory. */
struct user_keys *credential_keys(struct credential *credential);

/* Do both hold the same secret? In constant time for secrets of the same length. */
bool credential_equal(const struct credential *a, const struct credential *b);

#endif
