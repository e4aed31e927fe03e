/* SPDX-License-Identifier: ISC */
/*
 * SCRAM-SHA-256 authentication of clients. RFC 5802, RFC 7677; protocol: "SASL Authentication".
 *
 * The keys of a plain secret are derived once, on a helper thread while the client computes its
 * own keys, and stored with the user. Unknown users go through the same exchange, with a salt
 * that depends only on their name, and are refused at its end.
 *
 * Every refusal is delayed until keys could have been derived. Otherwise the refusal of the
 * first login of a user with a plain secret, which waits for the keys, would come later than
 * that of an unknown user, and show that the user exists.
 */
#include "crypt/scram.h"

#include <string.h>

#include "crypt/digest.h"
#include "crypt/md5.h"
#include "crypt/scram.h"
#include "session/auth/client_login_state.h"
#include "session/auth/exchange.h"
#include "session/auth/method.h"
#include "session/auth/refusal.h"
#include "session/link/derivation.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

/* Over TLS the exchange can be bound to the pooler's certificate; this is offered first. */
static enum auth_result begin(struct client_link *client)
{
	/* A list of mechanisms ends with an empty name. */
	static const char plain[] = SCRAM_MECHANISM "\0";
	static const char bound[] = SCRAM_MECHANISM_PLUS "\0" SCRAM_MECHANISM "\0";
	struct login *login = client->login;

	login->end_point_length = tls_end_point(&client->link.stream, login->end_point);
	login->scram.offers_binding = login->end_point_length > 0;
	if (login->scram.offers_binding)
		exchange_ask(client, AUTH_SASL, bound, sizeof(bound));
	else
		exchange_ask(client, AUTH_SASL, plain, sizeof(plain));
	return AUTH_PENDING;
}

/* Returns false when the mechanism is none of those that were offered. */
static bool choose_mechanism(struct login *login, const char *mechanism)
{
	if (strcmp(mechanism, SCRAM_MECHANISM) == 0)
		return true;
	if (!login->scram.offers_binding || strcmp(mechanism, SCRAM_MECHANISM_PLUS) != 0)
		return false;
	login->scram.binding = (struct scram_binding){
		.type = SCRAM_BINDING_TYPE,
		.data = login->end_point,
		.length = login->end_point_length,
	};
	return true;
}

/*
 * Make the verifier of an unknown user. Its salt looks like that of a known user: it
 * is random and the same at each login. Returns false when OpenSSL fails.
 */
static bool mock_verifier(struct client_link *client, struct scram_secret *out)
{
	const struct registry *registry = link_registry(&client->link);
	const char *name = client->user->name;
	const struct digest_piece pieces[] = {{name, strlen(name)},
		{registry->process->mock_salt, sizeof(registry->process->mock_salt)}};
	uint8_t digest[SHA256_SIZE];

	if (!digest_of(DIGEST_SHA256, pieces, 2, digest))
		return false;
	out->iterations = (uint32_t)registry->process->settings->scram_iterations;
	out->salt_length = SCRAM_SALT_SIZE;
	memcpy(out->salt, digest, SCRAM_SALT_SIZE);
	random_fill(&registry->loop->random, out->stored_key, sizeof(out->stored_key));
	random_fill(&registry->loop->random, out->server_key, sizeof(out->server_key));
	client->login->always_refused = true;
	return true;
}

static enum auth_result check_final(
	struct client_link *client, const char *message, size_t length);

static bool same_salt(const struct scram_secret *a, const struct scram_secret *b)
{
	return a->salt_length == b->salt_length &&
		memcmp(a->salt, b->salt, a->salt_length) == 0;
}

/* Wait for the verifier of these keys, which is being derived. */
static void await_verifier(struct login *login, struct user_keys *keys)
{
	login->awaited = keys;
	TAILQ_INSERT_TAIL(&keys->waiting, login, in_awaited);
}

/*
 * Take a login from those that wait for the verifier with this salt, which is random and names
 * the derivation. NULL: none is left. Others in the list wait for a later derivation.
 */
static struct login *take_waiting(struct user_keys *keys, const struct scram_secret *parameters)
{
	struct login *login;

	TAILQ_FOREACH (login, &keys->waiting, in_awaited) {
		if (same_salt(&login->verifier, parameters)) {
			client_login_stop_waiting(login);
			return login;
		}
	}
	return NULL;
}

/*
 * Continue the login: if it has received the client's final message, this is checked now. A
 * login with another secret by now is refused.
 */
static void proceed_waiting(
	struct login *login, const struct user_keys *keys, const struct scram_secret *verifier)
{
	struct client_link *client = login->client;

	login->verifier = *verifier;
	if (exchange_keys(client) != keys)
		login->steps->proceed(client, exchange_refuse(client));
	else if (login->final.length > 0)
		login->steps->proceed(client,
			check_final(
				client, (const char *)login->final.data, login->final.length));
}

/*
 * The keys of a plain secret have been derived: for all logins with this secret, even if the
 * login that started the derivation has ended. keys is NULL when out of memory.
 */
static void on_derived(struct registry *registry, const struct derivation_owner *owner,
	const struct scram_secret *parameters, const struct scram_keys *keys)
{
	struct scram_secret *verifier = &owner->into->verifier;
	/* False: the secret or the iteration count has changed, and a new salt was chosen. */
	const bool is_current = same_salt(verifier, parameters);
	struct scram_secret made = *parameters;
	struct login *login;

	(void)registry;
	if (!keys) {
		if (is_current)
			verifier->salt_length = 0; /* the next login starts another one */
		while ((login = take_waiting(owner->into, parameters)) != NULL)
			login->steps->proceed(login->client, exchange_refuse(login->client));
		return;
	}
	memcpy(made.stored_key, keys->stored_key, SCRAM_KEY_SIZE);
	memcpy(made.server_key, keys->server_key, SCRAM_KEY_SIZE);
	if (is_current) {
		*verifier = made;
		owner->into->verifier_known = true;
	}
	while ((login = take_waiting(owner->into, parameters)) != NULL)
		proceed_waiting(login, owner->into, &made);
	explicit_bzero(&made, sizeof(made));
}

/* Start the derivation of a plain secret's keys with a new random salt. */
static bool start_derivation(struct client_link *client, struct user_keys *keys)
{
	struct registry *registry = link_registry(&client->link);
	const struct derivation_owner owner = {.link = &client->link, .into = keys};

	keys->verifier.iterations = (uint32_t)registry->process->settings->scram_iterations;
	keys->verifier.salt_length = SCRAM_SALT_SIZE;
	random_fill(&registry->loop->random, keys->verifier.salt, SCRAM_SALT_SIZE);
	if (derivation_start(
		    registry, &owner, exchange_secret(client), &keys->verifier, on_derived))
		return true;
	keys->verifier.salt_length = 0;
	return false;
}

/*
 * Drop keys that were or are being derived with another iteration count than the one in force:
 * unknown users have the one in force, so another count would show that a user exists.
 */
static void forget_outdated(struct client_link *client, struct user_keys *keys)
{
	const struct settings *settings = link_registry(&client->link)->process->settings;

	if (keys->verifier.salt_length == 0 || keys->is_scram ||
		keys->verifier.iterations == (uint32_t)settings->scram_iterations)
		return;
	keys->verifier_known = false;
	keys->verifier.salt_length = 0;
}

static bool choose_verifier(struct client_link *client)
{
	struct login *login = client->login;
	struct user_keys *keys;

	if (!exchange_secret(client))
		return mock_verifier(client, &login->verifier);
	keys = exchange_keys(client);
	if (!keys)
		return false;
	if (keys->is_scram && !exchange_may_use(client, &keys->verifier))
		return mock_verifier(client, &login->verifier);
	forget_outdated(client, keys);
	/* Without a salt no derivation of this plain secret's keys has been started yet. */
	if (!keys->verifier_known && keys->verifier.salt_length == 0 &&
		!start_derivation(client, keys))
		return false;
	login->verifier = keys->verifier;
	if (!keys->verifier_known)
		await_verifier(login, keys);
	return true;
}

static enum auth_result answer_first(
	struct client_link *client, const uint8_t *body, size_t length)
{
	struct login *login = client->login;
	struct reader reader;
	const char *mechanism;
	uint32_t size;
	const uint8_t *message;
	uint8_t nonce[SCRAM_NONCE_SIZE];
	const char *secret = exchange_secret(client);
	struct buffer out;
	enum scram_result result;

	login->not_before = derivation_end_expected(link_registry(&client->link));
	reader_init(&reader, body, length);
	mechanism = reader_string(&reader);
	if (mechanism && !choose_mechanism(login, mechanism)) {
		login->refusal = REASON_INVALID_SASL_MECHANISM;
		return AUTH_REFUSED;
	}
	size = reader_int32(&reader);
	message = reader_bytes(&reader, size);
	if (reader.failed || reader_left(&reader) > 0 || (secret && md5_is_secret(secret)) ||
		!choose_verifier(client))
		return exchange_refuse(client);
	buffer_init(&out);
	random_fill(&client->link.stream.loop->random, nonce, sizeof(nonce));
	result = scram_server_first(&login->scram, (const char *)message, size, nonce,
		login->verifier.salt, login->verifier.salt_length, login->verifier.iterations,
		&out);
	if (result == SCRAM_GOOD) {
		login->answered_first = true;
		exchange_ask(client, AUTH_SASL_CONTINUE, out.data, out.length);
	}
	buffer_free(&out);
	return result == SCRAM_GOOD ? AUTH_PENDING : exchange_refuse(client);
}

/*
 * Store the key that the client has proved: with it pgusher logs in to servers with this
 * secret.
 */
static void remember_client_key(
	struct client_link *client, const uint8_t client_key[SCRAM_KEY_SIZE])
{
	struct user_keys *keys = exchange_keys(client);

	/* The secret may have changed since the exchange began: the key is useless then. */
	if (!keys || !keys->is_scram ||
		memcmp(keys->verifier.stored_key, client->login->verifier.stored_key,
			SCRAM_KEY_SIZE) != 0)
		return;
	memcpy(keys->keys.client_key, client_key, SCRAM_KEY_SIZE);
	memcpy(keys->keys.stored_key, keys->verifier.stored_key, SCRAM_KEY_SIZE);
	memcpy(keys->keys.server_key, keys->verifier.server_key, SCRAM_KEY_SIZE);
	keys->client_key_known = true;
}

/*
 * Keep AuthenticationSASLFinal, to send it together with the welcome: a write of its own would
 * cost more than the rest of the exchange. Returns false when out of memory.
 */
static bool keep_sasl_final(struct login *login, const struct buffer *message)
{
	writer_authentication(
		&login->sasl_final, AUTH_SASL_FINAL, message->data, message->length);
	if (!login->sasl_final.failed)
		return true;
	buffer_free(&login->sasl_final);
	login->refusal = REASON_NO_MEMORY;
	return false;
}

static enum auth_result check_final(
	struct client_link *client, const char *message, size_t length)
{
	struct login *login = client->login;
	uint8_t client_key[SCRAM_KEY_SIZE];
	enum auth_result result = AUTH_PASSED;
	struct buffer out;

	buffer_init(&out);
	if (scram_server_final(&login->scram, message, length, login->verifier.stored_key,
		    login->verifier.server_key, client_key, &out) != SCRAM_GOOD ||
		login->always_refused) {
		result = refusal_at(client, login->not_before);
	} else {
		remember_client_key(client, client_key);
		if (!keep_sasl_final(login, &out))
			result = AUTH_REFUSED;
	}
	explicit_bzero(client_key, sizeof(client_key));
	buffer_free(&out);
	return result;
}

static enum auth_result answer(struct client_link *client, const uint8_t *body, size_t length)
{
	struct login *login = client->login;

	if (!login->answered_first)
		return answer_first(client, body, length);
	/*
	 * Refuse a second final message, also while the refusal of the first one is delayed. A
	 * message that is too long is refused like any other, so that it reveals nothing.
	 */
	if (length > SCRAM_MAX_MESSAGE || login->final.length > 0 || refusal_is_pending(login))
		return exchange_refuse(client);
	if (!login->awaited)
		return check_final(client, (const char *)body, length);
	/* The keys are not derived yet: keep the message until they are. */
	if (!buffer_append(&login->final, body, length))
		return exchange_refuse(client);
	return AUTH_PENDING;
}

const struct auth_method auth_scram = {
	.name = "scram-sha-256",
	.counted = LOGIN_SCRAM,
	.refusal = REASON_SASL_AUTHENTICATION_FAILED,
	.begin = begin,
	.answer = answer,
};
