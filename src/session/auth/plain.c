/* SPDX-License-Identifier: ISC */
/* Protocol: "Message Flow", AuthenticationCleartextPassword. */
#include <string.h>

#include "crypt/md5.h"
#include "session/auth/exchange.h"
#include "session/auth/method.h"
#include "session/link/derivation.h"
#include "wire/message.h"

static enum auth_result begin(struct client_link *client)
{
	exchange_ask(client, AUTH_CLEARTEXT, NULL, 0);
	return AUTH_PENDING;
}

/* The keys of a client's password have been derived; keys is NULL when out of memory. */
static void on_derived(struct registry *registry, const struct derivation_owner *owner,
	const struct scram_secret *parameters, const struct scram_keys *keys)
{
	struct client_link *client = client_of(owner->link);

	(void)registry;
	client->login->steps->proceed(client,
		keys && !client->login->always_refused && scram_secret_accepts(parameters, keys)
			? AUTH_PASSED
			: exchange_refuse(client));
}

static enum auth_result derive(
	struct client_link *client, const char *password, const struct scram_secret *parameters)
{
	const struct derivation_owner owner = {
		.link = &client->link,
		.handle = &client->login->derivation,
	};

	if (!derivation_start(
		    link_registry(&client->link), &owner, password, parameters, on_derived))
		return exchange_refuse(client);
	return AUTH_PENDING;
}

/*
 * A wrong password for a SCRAM secret is refused after a derivation. If there are such secrets,
 * derive keys before every refusal: otherwise the time of a refusal would show which users
 * exist.
 */
static enum auth_result refuse_after_derivation(
	struct client_link *client, const char *password)
{
	const struct registry *registry = link_registry(&client->link);
	struct scram_secret mock = {
		.iterations = (uint32_t)registry->process->settings->scram_iterations,
		.salt_length = SCRAM_SALT_SIZE,
	};

	if (!SHARED_GET(registry->process->has_scram_secrets))
		return exchange_refuse(client);
	random_fill(&registry->loop->random, mock.salt, SCRAM_SALT_SIZE);
	client->login->always_refused = true;
	return derive(client, password, &mock);
}

static enum auth_result check_scram(
	struct client_link *client, const char *secret, const char *password)
{
	struct scram_secret parsed;
	enum auth_result result;

	SHARED_SET(link_registry(&client->link)->process->has_scram_secrets, true);
	if (!scram_secret_parse(secret, &parsed))
		return exchange_refuse(client);
	result = exchange_may_use(client, &parsed) ? derive(client, password, &parsed)
						   : refuse_after_derivation(client, password);
	explicit_bzero(&parsed, sizeof(parsed));
	return result;
}

static bool check_md5(struct client_link *client, const char *secret, const char *password)
{
	char hashed[36];
	const bool equal = md5_secret(password, client->user->name, hashed) &&
		exchange_equal(hashed, secret);

	explicit_bzero(hashed, sizeof(hashed));
	return equal;
}

static enum auth_result answer(struct client_link *client, const uint8_t *body, size_t length)
{
	const char *password = (const char *)body;
	const char *secret = exchange_secret(client);
	bool hash_equal, equal = false;

	/* A second password is refused while the first one is checked. */
	if (client->login->derivation || !exchange_is_password(body, length))
		return exchange_refuse(client);
	/* For every kind of secret, and for none: the time must not show which kind it is. */
	hash_equal = check_md5(client, secret ? secret : "", password);
	switch (secret_kind(secret)) {
	case SECRET_PLAIN:
		equal = exchange_equal(password, secret);
		break;
	case SECRET_MD5:
		equal = hash_equal;
		break;
	case SECRET_SCRAM:
		return check_scram(client, secret, password);
	case SECRET_NONE:
	case SECRET_EMPTY:
		break;
	}
	return equal ? AUTH_PASSED : refuse_after_derivation(client, password);
}

const struct auth_method auth_plain = {
	.name = "plain",
	.counted = LOGIN_PLAIN,
	.refusal = REASON_PASSWORD_AUTHENTICATION_FAILED,
	.begin = begin,
	.answer = answer,
};
