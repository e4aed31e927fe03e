/* SPDX-License-Identifier: ISC */
#include "model/user.h"

#include <string.h>

#include "model/shared/tally.h"

void user_drop_keys(struct user *user)
{
	user_keys_unref(user->keys);
	user->keys = NULL;
}

void user_set_secret(struct user *user, const char *secret)
{
	/*
	 * After a reload the text may be at another address but the same: its keys stay valid.
	 */
	if (!secret || !user->secret || strcmp(secret, user->secret) != 0)
		user_drop_keys(user);
	user->secret = secret;
}

struct user_keys *user_keys(struct user *user)
{
	if (!user->keys)
		user->keys = user_keys_new(user->secret);
	return user->keys;
}

bool user_is_needed(const struct user *user)
{
	return user->config || user->secret || user->forced || user->clients > 0 ||
		!TAILQ_EMPTY(&user->pools);
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

unsigned user_clients(const struct user *user)
{
	const struct tally_share *share = user->cap.share;

	return share ? SHARED_GET(share->tally->clients) : user->clients;
}
