/* SPDX-License-Identifier: ISC */
/* Protocol: "Message Flow", AuthenticationMD5Password. */
#include "crypt/md5.h"

#include <string.h>

#include "session/auth/exchange.h"
#include "session/auth/method.h"
#include "wire/message.h"

enum { RESPONSE_LENGTH = 35 };

static enum auth_result begin(struct client_link *client)
{
	struct login *login = client->login;

	/* A SCRAM secret cannot be checked by MD5: the exchange is SCRAM instead. */
	if (secret_kind(exchange_secret(client)) == SECRET_SCRAM) {
		login->method = &auth_scram;
		return login->method->begin(client);
	}
	random_fill(&client->link.stream.loop->random, login->salt, sizeof(login->salt));
	exchange_ask(client, AUTH_MD5, login->salt, sizeof(login->salt));
	return AUTH_PENDING;
}

/*
 * Compute the response that a client with the right password sends. Unknown users cost the same
 * work, with an empty secret. Returns false when OpenSSL fails.
 */
static bool expected_response(struct client_link *client, char out[36])
{
	const char *secret = exchange_secret(client);
	char hashed[36];
	bool done;

	if (secret && secret_kind(secret) == SECRET_MD5)
		memcpy(hashed, secret, sizeof(hashed));
	else if (!md5_secret(secret ? secret : "", client->user->name, hashed))
		return false;
	done = md5_response(hashed, client->login->salt, out);
	explicit_bzero(hashed, sizeof(hashed));
	return done;
}

static enum auth_result answer(struct client_link *client, const uint8_t *body, size_t length)
{
	char expected[36];
	bool equal;

	if (length != RESPONSE_LENGTH + 1 || body[RESPONSE_LENGTH] != '\0' ||
		!expected_response(client, expected))
		return exchange_refuse(client);
	equal = exchange_equal((const char *)body, expected);
	explicit_bzero(expected, sizeof(expected));
	return equal && exchange_secret(client) ? AUTH_PASSED : exchange_refuse(client);
}

const struct auth_method auth_md5 = {
	.name = "md5",
	.counted = LOGIN_MD5,
	.refusal = REASON_PASSWORD_AUTHENTICATION_FAILED,
	.begin = begin,
	.answer = answer,
};
