/* SPDX-License-Identifier: ISC */
/* Client side of SCRAM-SHA-256. */
#include <openssl/crypto.h>
#include <string.h>

#include "crypt/scram_parts.h"

static void append_gs2_header(struct buffer *out, const struct scram_binding *binding)
{
	if (binding->type != NULL)
		(void)buffer_printf(out, "p=%s,,", binding->type);
	else
		scram_append_text(out, "n,,");
}

enum scram_result scram_client_first(
	struct scram_client *client, const uint8_t nonce[SCRAM_NONCE_SIZE], struct buffer *out)
{
	scram_append_nonce(&client->nonce, nonce);
	scram_append_text(&client->auth_message, "n=,r=");
	(void)buffer_append(&client->auth_message, client->nonce.data, client->nonce.length);

	append_gs2_header(out, &client->binding);
	(void)buffer_append(out, client->auth_message.data, client->auth_message.length);
	return client->nonce.failed || client->auth_message.failed || out->failed
		? SCRAM_NO_MEMORY
		: SCRAM_GOOD;
}

/* The server's nonce must be the client's with something appended. */
static bool extends_ours(struct scram_span nonce, const struct buffer *ours)
{
	return ours->length > 0 && nonce.length > ours->length &&
		memcmp(nonce.at, ours->data, ours->length) == 0;
}

enum scram_result scram_client_challenge(
	struct scram_client *client, const char *message, size_t length)
{
	struct scram_cursor cursor = scram_cursor_over(message, length);
	struct scram_span nonce, salt, iterations;

	if (client->iterations != 0 || !scram_is_acceptable(message, length) ||
		!scram_cursor_attribute(&cursor, "r=", &nonce) ||
		!scram_cursor_attribute(&cursor, ",s=", &salt) ||
		!scram_cursor_attribute(&cursor, ",i=", &iterations) ||
		!scram_cursor_skip_extensions(&cursor, NULL))
		return SCRAM_REFUSED;
	if (!scram_is_nonce(nonce) || !extends_ours(nonce, &client->nonce) ||
		!scram_read_salt(salt, client->salt, &client->salt_length) ||
		!scram_read_number(iterations, UINT32_MAX, &client->iterations))
		return SCRAM_REFUSED;
	if (client->iterations > SCRAM_MAX_ITERATIONS)
		return SCRAM_TOO_MANY_ITERATIONS;

	(void)buffer_append(&client->nonce, nonce.at + client->nonce.length,
		nonce.length - client->nonce.length);
	scram_append_text(&client->auth_message, ",");
	(void)buffer_append(&client->auth_message, message, length);
	return client->nonce.failed || client->auth_message.failed ? SCRAM_NO_MEMORY
								   : SCRAM_GOOD;
}

/* Write c= and r=, and append them to the signed text. */
static bool append_without_proof(struct scram_client *client, struct buffer *out)
{
	struct buffer gs2_header = {0};
	size_t start = out->length;
	bool good;

	append_gs2_header(&gs2_header, &client->binding);
	scram_append_text(out, "c=");
	good = !gs2_header.failed &&
		scram_append_binding(out, gs2_header.data, gs2_header.length, &client->binding);
	buffer_free(&gs2_header);
	scram_append_text(out, ",r=");
	(void)buffer_append(out, client->nonce.data, client->nonce.length);
	if (!good || out->failed)
		return false;
	scram_append_text(&client->auth_message, ",");
	return buffer_append(&client->auth_message, out->data + start, out->length - start);
}

enum scram_result scram_client_answer(
	struct scram_client *client, const struct scram_keys *keys, struct buffer *out)
{
	const struct buffer *signed_text = &client->auth_message;
	uint8_t stored_key[SCRAM_KEY_SIZE], proof[SCRAM_KEY_SIZE];
	bool good;

	if (client->iterations == 0 || client->iterations > SCRAM_MAX_ITERATIONS ||
		client->answered)
		return SCRAM_REFUSED;
	if (!append_without_proof(client, out))
		return SCRAM_NO_MEMORY;

	/* RFC 5802 section 3: ClientProof = ClientKey XOR HMAC(StoredKey, AuthMessage) */
	good = scram_sha256(keys->client_key, stored_key) &&
		scram_hmac(stored_key, signed_text->data, signed_text->length, proof) &&
		scram_hmac(keys->server_key, signed_text->data, signed_text->length,
			client->server_signature);
	if (good) {
		scram_exclusive_or(proof, keys->client_key);
		scram_append_text(out, ",p=");
		scram_append_key(out, proof);
		client->answered = true;
	}
	explicit_bzero(stored_key, sizeof(stored_key));
	explicit_bzero(proof, sizeof(proof));
	return good && !out->failed ? SCRAM_GOOD : SCRAM_NO_MEMORY;
}

enum scram_result scram_client_verify(
	struct scram_client *client, const char *message, size_t length)
{
	struct scram_cursor cursor = scram_cursor_over(message, length);
	uint8_t signature[SCRAM_KEY_SIZE];
	struct scram_span value;

	if (!client->answered || !scram_is_acceptable(message, length) ||
		!scram_cursor_attribute(&cursor, "v=", &value) ||
		!scram_cursor_skip_extensions(&cursor, NULL) ||
		!scram_read_key(value, signature))
		return SCRAM_REFUSED;
	if (CRYPTO_memcmp(signature, client->server_signature, sizeof(signature)) != 0)
		return SCRAM_REFUSED;
	return SCRAM_GOOD;
}

void scram_client_free(struct scram_client *client)
{
	buffer_free(&client->auth_message);
	buffer_free(&client->nonce);
	explicit_bzero(client, sizeof(*client));
}
