/* SPDX-License-Identifier: ISC */
#include "model/user.h"

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

void user_drop_keys(struct user *user)
{
	if (!user->keys)
		return;
	explicit_bzero(user->keys, sizeof(*user->keys));
	free(user->keys);
	user->keys = NULL;
}

void user_set_secret(struct user *user, const char *secret)
{
	/* The same text may stand in a new list: what was derived from it stays good. */
	if (!secret || !user->secret || strcmp(secret, user->secret) != 0)
		user_drop_keys(user);
	user->secret = secret;
}

struct user_keys *user_keys(struct user *user)
{
	if (user->keys)
		return user->keys;
	user->keys = calloc(1, sizeof(*user->keys));
	if (user->keys && user->secret)
		user->keys->verifier_known =
			scram_secret_parse(user->secret, &user->keys->verifier);
	return user->keys;
}

int user_max_servers(const struct user *user, const struct settings *settings)
{
	if (user->config && user->config->max_user_connections > 0)
		return user->config->max_user_connections;
	return settings->max_user_connections;
}

int user_max_clients(const struct user *user, const struct settings *settings)
{
	if (user->config && user->config->max_user_client_connections > 0)
		return user->config->max_user_client_connections;
	return settings->max_user_client_connections;
}
