/* SPDX-License-Identifier: ISC */
#include "model/credential.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "crypt/md5.h"

enum secret_kind secret_kind(const char *secret)
{
	struct scram_secret parsed;
	bool is_scram;

	if (!secret)
		return SECRET_NONE;
	if (secret[0] == '\0')
		return SECRET_EMPTY;
	if (md5_is_secret(secret))
		return SECRET_MD5;
	is_scram = scram_secret_parse(secret, &parsed);
	explicit_bzero(&parsed, sizeof(parsed));
	return is_scram ? SECRET_SCRAM : SECRET_PLAIN;
}

/* --- keys --------------------------------------------------------------------------------- */

struct user_keys *user_keys_new(const char *secret)
{
	struct user_keys *keys = calloc(1, sizeof(*keys));

	if (!keys)
		return NULL;
	keys->references = 1;
	TAILQ_INIT(&keys->waiting);
	if (secret)
		keys->is_scram = keys->verifier_known =
			scram_secret_parse(secret, &keys->verifier);
	return keys;
}

struct user_keys *user_keys_ref(struct user_keys *keys)
{
	keys->references++;
	return keys;
}

void user_keys_unref(struct user_keys *keys)
{
	if (!keys || --keys->references > 0)
		return;
	explicit_bzero(keys, sizeof(*keys));
	free(keys);
}

/* --- credentials -------------------------------------------------------------------------- */

struct credential *credential_new(const void *secret, size_t length)
{
	struct credential *credential = calloc(1, sizeof(*credential) + length + 1);

	if (!credential)
		return NULL;
	credential->references = 1;
	credential->size = length + 1;
	if (length)
		memcpy(credential->secret, secret, length);
	return credential;
}

struct credential *credential_ref(struct credential *credential)
{
	credential->references++;
	return credential;
}

void credential_unref(struct credential *credential)
{
	if (!credential || --credential->references > 0)
		return;
	user_keys_unref(credential->keys);
	explicit_bzero(credential, sizeof(*credential) + credential->size);
	free(credential);
}

struct user_keys *credential_keys(struct credential *credential)
{
	if (!credential->keys)
		credential->keys = user_keys_new(credential->secret);
	return credential->keys;
}

bool credential_equal(const struct credential *a, const struct credential *b)
{
	return a->is_password == b->is_password && a->size == b->size &&
		CRYPTO_memcmp(a->secret, b->secret, a->size) == 0;
}
