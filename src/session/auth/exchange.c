/* SPDX-License-Identifier: ISC */
#include "session/auth/exchange.h"

#include <openssl/crypto.h>
#include <string.h>

#include "session/link/close.h"
#include "wire/message.h"
#include "wire/writer.h"

bool exchange_is_password(const uint8_t *body, size_t length)
{
	return length > 0 && length - 1 <= CLIENT_PASSWORD_MAX &&
		memchr(body, '\0', length) == body + length - 1;
}

bool exchange_ask(struct client_link *client, unsigned request, const void *data, size_t length)
{
	struct buffer message;
	bool sent;

	buffer_init(&message);
	writer_authentication(&message, (enum authentication_request)request, data, length);
	sent = link_send(&client->link, &message);
	if (!sent)
		client_close_for(client, REASON_UNEXPECTED_EOF);
	return sent;
}

/* The secret that was looked up or sent for this login has precedence over the user's. */
static const char *known_secret(const struct client_link *client)
{
	const struct login *login = client->login;

	if (login && login->credential)
		return login->credential->secret;
	return client->user ? client->user->secret : NULL;
}

bool exchange_is_known(const struct client_link *client)
{
	return known_secret(client) != NULL;
}

const char *exchange_secret(const struct client_link *client)
{
	const char *secret = known_secret(client);

	return secret && secret[0] != '\0' ? secret : NULL;
}

struct user_keys *exchange_keys(struct client_link *client)
{
	struct credential *credential = client->login->credential;

	return credential ? credential_keys(credential) : user_keys(client->user);
}

bool exchange_may_use(const struct client_link *client, const struct scram_secret *secret)
{
	if (scram_secret_is_usable(secret))
		return true;
	link_log_repeated(&client->link, LEVEL_WARNING,
		"the SCRAM secret of this user is not used: it has %u iterations, more than %u",
		(unsigned)secret->iterations, (unsigned)SCRAM_MAX_ITERATIONS);
	return false;
}

bool exchange_equal(const char *a, const char *b)
{
	const size_t length = strlen(a);

	return length == strlen(b) && CRYPTO_memcmp(a, b, length) == 0;
}

enum auth_result exchange_refuse(struct client_link *client)
{
	client->login->refusal = client->login->method->refusal;
	return AUTH_REFUSED;
}
