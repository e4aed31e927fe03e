/* SPDX-License-Identifier: ISC */
#include "session/server/server_authentication.h"

#include <string.h>

#include "crypt/md5.h"
#include "session/link/close.h"
#include "session/link/derivation.h"
#include "session/server/server_login_state.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

/*
 * The secret to log in with: the database's password of a forced user, else the pool's secret.
 */
static const char *secret_of(const struct pool *pool)
{
	if (pool_is_forced(pool) && pool->database->config->password)
		return pool->database->config->password;
	return pool_secret(pool);
}

/*
 * A password that a client has sent is always a plain secret, even if it looks like a stored
 * MD5 or SCRAM secret.
 */
static enum secret_kind secret_kind_of(const struct pool *pool)
{
	const struct credential *credential = pool->credential;
	const char *secret = secret_of(pool);

	return credential && credential->is_password && secret == credential->secret
		? SECRET_PLAIN
		: secret_kind(secret);
}

/* Close the server: no secret of a kind that the server accepts is known. */
static void refuse_secret(struct server_link *server, const char *method, const char *why)
{
	link_log_kind(&server->link, LEVEL_ERROR, why, 0, "cannot do %s authentication: %s",
		method, why);
	/*
	 * Waiting clients get the reason "wrong password type"; the server's log line differs.
	 */
	server->login->wrong_secret = true;
	server_close_for(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
}

static void answer_cleartext(struct server_link *server)
{
	const char *secret = secret_of(server->link.pool);
	struct buffer message;

	if (secret_kind_of(server->link.pool) != SECRET_PLAIN) {
		refuse_secret(server, "cleartext", "wrong password type");
		return;
	}
	buffer_init_secret(&message);
	writer_password(&message, secret, strlen(secret) + 1);
	if (!link_send(&server->link, &message))
		server_close_for(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
}

static void answer_md5(struct server_link *server, struct reader *reader)
{
	const uint8_t *salt = reader_bytes(reader, 4);
	const char *secret = secret_of(server->link.pool);
	const enum secret_kind kind = secret_kind_of(server->link.pool);
	char hashed[36], response[36];
	struct buffer message;

	if (!salt) {
		server_close_for(server, REASON_BAD_PKT_HEADER);
		return;
	}
	if (kind == SECRET_MD5)
		memcpy(hashed, secret, sizeof(hashed));
	if ((kind != SECRET_MD5 && kind != SECRET_PLAIN) ||
		(kind == SECRET_PLAIN &&
			!md5_secret(secret, server->link.pool->user->name, hashed)) ||
		!md5_response(hashed, salt, response)) {
		refuse_secret(server, "MD5", "wrong password type");
		return;
	}
	buffer_init_secret(&message);
	writer_password(&message, response, sizeof(response));
	explicit_bzero(hashed, sizeof(hashed));
	explicit_bzero(response, sizeof(response));
	if (!link_send(&server->link, &message))
		server_close_for(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
}

/* --- SCRAM -------------------------------------------------------------------------------- */

/* Return the best supported mechanism of the server's list, or NULL when there is none. */
static const char *choose_mechanism(struct server_login *login, struct reader *reader)
{
	const bool bindable = login->end_point_length > 0;
	const char *name, *found = NULL;

	while ((name = reader_string(reader)) != NULL && name[0] != '\0') {
		if (bindable && strcmp(name, SCRAM_MECHANISM_PLUS) == 0)
			found = SCRAM_MECHANISM_PLUS;
		else if (!found && strcmp(name, SCRAM_MECHANISM) == 0)
			found = SCRAM_MECHANISM;
	}
	if (found && strcmp(found, SCRAM_MECHANISM_PLUS) == 0)
		login->scram.binding = (struct scram_binding){
			.type = SCRAM_BINDING_TYPE,
			.data = login->end_point,
			.length = login->end_point_length,
		};
	return reader->failed ? NULL : found;
}

/*
 * Return the SCRAM keys that a client has presented, or NULL when there are none. The server
 * accepts them if it stores the same SCRAM secret as pgusher.
 */
static const struct scram_keys *client_keys(const struct pool *pool)
{
	const struct user_keys *keys = pool_keys(pool);

	/* With a forced user the client's keys belong to another user. */
	if (pool->database->config->user || !keys || !keys->client_key_known)
		return NULL;
	return &keys->keys;
}

bool server_authentication_has_secret(const struct pool *pool)
{
	const enum secret_kind kind = secret_kind_of(pool);

	return kind == SECRET_PLAIN || kind == SECRET_MD5 ||
		(kind == SECRET_SCRAM && client_keys(pool));
}

static void begin_scram(struct server_link *server, struct reader *reader)
{
	struct server_login *login = server->login;
	const enum secret_kind kind = secret_kind_of(server->link.pool);
	uint8_t nonce[SCRAM_NONCE_SIZE];
	const char *mechanism;
	struct buffer first, message;

	login->end_point_length = tls_end_point(&server->link.stream, login->end_point);
	mechanism = choose_mechanism(login, reader);
	if (!mechanism) {
		login->refused = true;
		server_close_for(server, REASON_SERVER_NO_SASL_MECHANISM);
		return;
	}
	if (kind == SECRET_SCRAM && !client_keys(server->link.pool)) {
		refuse_secret(server, "SCRAM",
			"password is SCRAM secret but client authentication did not provide SCRAM keys");
		return;
	}
	if (kind != SECRET_PLAIN && kind != SECRET_SCRAM) {
		refuse_secret(server, "SCRAM", "wrong password type");
		return;
	}
	buffer_init(&first);
	buffer_init_secret(&message);
	random_fill(&server->link.stream.loop->random, nonce, sizeof(nonce));
	login->scram_begun = scram_client_first(&login->scram, nonce, &first) == SCRAM_GOOD;
	writer_sasl_initial(&message, mechanism, first.data, first.length);
	buffer_free(&first);
	if (login->scram_begun && link_send(&server->link, &message))
		return;
	buffer_free(&message);
	server_close_for(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
}

static void answer_scram(struct server_link *server, const struct scram_keys *keys)
{
	struct buffer final, message;
	enum scram_result result;

	buffer_init(&final);
	buffer_init_secret(&message);
	result = scram_client_answer(&server->login->scram, keys, &final);
	writer_password(&message, final.data, final.length);
	buffer_free(&final);
	if (result == SCRAM_GOOD && link_send(&server->link, &message))
		return;
	buffer_free(&message);
	server_close_for(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
}

/* The keys for the server's salt have been derived; keys is NULL when out of memory. */
static void on_derived(struct registry *registry, const struct derivation_owner *owner,
	const struct scram_secret *parameters, const struct scram_keys *keys)
{
	struct server_link *server = server_of(owner->link);

	(void)registry;
	(void)parameters;
	if (keys)
		answer_scram(server, keys);
	else
		server_close_for(server, REASON_NO_MEMORY);
}

/*
 * Close a server that demands more iterations than are run for any server. The failure is
 * final: waiting clients get it.
 */
static void refuse_iterations(struct server_link *server, uint32_t iterations)
{
	link_log_repeated(&server->link, LEVEL_ERROR,
		"server demands %u SCRAM iterations, more than %u", (unsigned)iterations,
		(unsigned)SCRAM_MAX_ITERATIONS);
	server->login->refused = true;
	server_close_for(server, REASON_SERVER_TOO_MANY_ITERATIONS);
}

static void continue_scram(struct server_link *server, struct reader *reader)
{
	struct server_login *login = server->login;
	struct registry *registry = link_registry(&server->link);
	const size_t length = reader_left(reader);
	const char *message = (const char *)reader_bytes(reader, length);
	const char *secret = secret_of(server->link.pool);
	const struct derivation_owner owner = {
		.link = &server->link,
		.handle = &login->derivation,
	};
	struct scram_secret parameters = {0};
	enum scram_result challenge = SCRAM_REFUSED;

	if (login->scram_begun)
		challenge = scram_client_challenge(&login->scram, message, length);
	if (challenge == SCRAM_TOO_MANY_ITERATIONS) {
		refuse_iterations(server, login->scram.iterations);
		return;
	}
	if (challenge != SCRAM_GOOD) {
		server_close_for(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
		return;
	}
	if (secret_kind_of(server->link.pool) != SECRET_PLAIN) {
		const struct scram_keys *keys = client_keys(server->link.pool);

		if (keys)
			answer_scram(server, keys);
		else
			server_close_for(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
		return;
	}
	parameters.iterations = login->scram.iterations;
	parameters.salt_length = login->scram.salt_length;
	memcpy(parameters.salt, login->scram.salt, login->scram.salt_length);
	if (!derivation_start(registry, &owner, secret, &parameters, on_derived))
		server_close_for(server, REASON_NO_MEMORY);
}

/*
 * The server has not proved that it knows the secret. The failure is final: waiting clients get
 * it.
 */
static void reject_server(struct server_link *server)
{
	server->login->refused = true;
	server_close_for(server, REASON_SERVER_INVALID_SIGNATURE);
}

static void finish_scram(struct server_link *server, struct reader *reader)
{
	const size_t length = reader_left(reader);
	const char *message = (const char *)reader_bytes(reader, length);

	server->login->scram_verified =
		scram_client_verify(&server->login->scram, message, length) == SCRAM_GOOD;
	if (!server->login->scram_verified)
		reject_server(server);
}

/* --- all methods -------------------------------------------------------------------------- */

void server_authentication_answer(
	struct server_link *server, const uint8_t *body, size_t length)
{
	struct reader reader;
	uint32_t request;

	reader_init(&reader, body, length);
	request = reader_int32(&reader);
	if (reader.failed) {
		server_close_for(server, REASON_BAD_PKT_HEADER);
		return;
	}
	switch (request) {
	case AUTH_OK:
		/* A server that began SCRAM must prove that it knows the secret. */
		if (server->login->scram_begun && !server->login->scram_verified)
			reject_server(server);
		else
			server->login->authenticated = true;
		break;
	case AUTH_CLEARTEXT:
		answer_cleartext(server);
		break;
	case AUTH_MD5:
		answer_md5(server, &reader);
		break;
	case AUTH_SASL:
		begin_scram(server, &reader);
		break;
	case AUTH_SASL_CONTINUE:
		continue_scram(server, &reader);
		break;
	case AUTH_SASL_FINAL:
		finish_scram(server, &reader);
		break;
	default:
		link_log_repeated(&server->link, LEVEL_ERROR,
			"unknown/unsupported auth method: %u", request);
		refuse_secret(server, "this", "wrong password type");
		break;
	}
}
