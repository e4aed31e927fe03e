/* SPDX-License-Identifier: ISC */
/* Server side of SCRAM-SHA-256. */
#include <openssl/crypto.h>
#include <string.h>

#include "crypt/base64.h"
#include "crypt/scram_parts.h"

enum { SALT_TEXT_SIZE = BASE64_SIZE(SCRAM_MAX_SALT) };

/*
 * The gs2-header: "n" no channel binding, "y" the client supports it and believes that the
 * server does not, "p" bound. The second field, an authorization identity, must be empty.
 */
static bool read_gs2_header(struct scram_cursor *cursor, const struct scram_server *server)
{
	if (server->binding.type == NULL)
		return scram_cursor_skip(cursor, "n,,") ||
			(!server->offers_binding && scram_cursor_skip(cursor, "y,,"));
	return scram_cursor_skip(cursor, "p=") &&
		scram_cursor_skip(cursor, server->binding.type) &&
		scram_cursor_skip(cursor, ",,");
}

enum scram_result scram_server_first(struct scram_server *server, const char *message,
	size_t length, const uint8_t nonce[SCRAM_NONCE_SIZE], const uint8_t *salt,
	size_t salt_length, uint32_t iterations, struct buffer *out)
{
	struct scram_cursor cursor = scram_cursor_over(message, length);
	char salt_text[SALT_TEXT_SIZE];
	struct scram_span name, client_nonce;
	size_t header, first;

	if (server->auth_message.length > 0 || !scram_is_acceptable(message, length) ||
		!read_gs2_header(&cursor, server))
		return SCRAM_REFUSED;
	header = (size_t)(cursor.at - message);
	/* The name is ignored: the user is the one of the startup packet. */
	if (!scram_cursor_attribute(&cursor, "n=", &name) ||
		!scram_cursor_attribute(&cursor, ",r=", &client_nonce) ||
		!scram_is_nonce(client_nonce) || !scram_cursor_skip_extensions(&cursor, NULL))
		return SCRAM_REFUSED;
	if (base64_encode(salt, salt_length, salt_text, sizeof(salt_text)) == 0)
		return SCRAM_REFUSED;

	(void)buffer_append(&server->gs2_header, message, header);
	(void)buffer_append(&server->nonce, client_nonce.at, client_nonce.length);
	scram_append_nonce(&server->nonce, nonce);

	first = out->length;
	scram_append_text(out, "r=");
	(void)buffer_append(out, server->nonce.data, server->nonce.length);
	(void)buffer_printf(out, ",s=%s,i=%u", salt_text, (unsigned int)iterations);
	if (out->failed || server->nonce.failed || server->gs2_header.failed)
		return SCRAM_NO_MEMORY;

	(void)buffer_append(&server->auth_message, message + header, length - header);
	scram_append_text(&server->auth_message, ",");
	(void)buffer_append(&server->auth_message, out->data + first, out->length - first);
	return server->auth_message.failed ? SCRAM_NO_MEMORY : SCRAM_GOOD;
}

/* Split client-final; `without` is its signed part. */
static bool read_client_final(const char *message, size_t length, struct scram_span *without,
	struct scram_span *binding, struct scram_span *nonce, uint8_t proof[SCRAM_KEY_SIZE])
{
	struct scram_cursor cursor = scram_cursor_over(message, length);
	struct scram_span proof_text;

	if (!scram_is_acceptable(message, length) ||
		!scram_cursor_attribute(&cursor, "c=", binding) ||
		!scram_cursor_attribute(&cursor, ",r=", nonce) ||
		!scram_cursor_skip_extensions(&cursor, ",p="))
		return false;
	*without = (struct scram_span){.at = message, .length = (size_t)(cursor.at - message)};
	return scram_cursor_attribute(&cursor, ",p=", &proof_text) &&
		scram_cursor_left(&cursor) == 0 && scram_read_key(proof_text, proof);
}

static bool span_equals(struct scram_span span, const struct buffer *buffer)
{
	return span.length == buffer->length && span.length > 0 &&
		memcmp(span.at, buffer->data, span.length) == 0;
}

/*
 * Check that c= repeats the client's first message and has the digest of the right
 * certificate.
 */
static enum scram_result check_binding(
	const struct scram_server *server, struct scram_span given)
{
	struct buffer expected = {0};
	enum scram_result result = SCRAM_REFUSED;

	if (scram_append_binding(&expected, server->gs2_header.data, server->gs2_header.length,
		    &server->binding) &&
		span_equals(given, &expected))
		result = SCRAM_GOOD;
	if (expected.failed)
		result = SCRAM_NO_MEMORY;
	buffer_free(&expected);
	return result;
}

enum scram_result scram_server_final(struct scram_server *server, const char *message,
	size_t length, const uint8_t stored_key[SCRAM_KEY_SIZE],
	const uint8_t server_key[SCRAM_KEY_SIZE], uint8_t client_key_out[SCRAM_KEY_SIZE],
	struct buffer *out)
{
	static const uint8_t dummy_key[SCRAM_KEY_SIZE];
	bool user_exists = stored_key != NULL && server_key != NULL;
	struct buffer *signed_text = &server->auth_message;
	uint8_t key[SCRAM_KEY_SIZE], signature[SCRAM_KEY_SIZE], hash[SCRAM_KEY_SIZE];
	struct scram_span without, binding, nonce;
	enum scram_result result;

	if (!read_client_final(message, length, &without, &binding, &nonce, key) ||
		!span_equals(nonce, &server->nonce))
		return SCRAM_REFUSED;
	result = check_binding(server, binding);
	if (result != SCRAM_GOOD)
		return result;

	scram_append_text(signed_text, ",");
	(void)buffer_append(signed_text, without.at, without.length);
	/* The exchange is over: the nonce must not be used again. */
	buffer_clear(&server->nonce);
	if (signed_text->failed)
		return SCRAM_NO_MEMORY;

	/* RFC 5802 section 3: ClientKey = ClientProof XOR HMAC(StoredKey, AuthMessage) */
	result = SCRAM_NO_MEMORY;
	if (!scram_hmac(user_exists ? stored_key : dummy_key, signed_text->data,
		    signed_text->length, signature))
		goto done;
	scram_exclusive_or(key, signature);
	if (!scram_sha256(key, hash) ||
		!scram_hmac(user_exists ? server_key : dummy_key, signed_text->data,
			signed_text->length, signature))
		goto done;

	result = SCRAM_REFUSED;
	if (CRYPTO_memcmp(hash, user_exists ? stored_key : dummy_key, SCRAM_KEY_SIZE) != 0 ||
		!user_exists)
		goto done;
	scram_append_text(out, "v=");
	scram_append_key(out, signature);
	result = out->failed ? SCRAM_NO_MEMORY : SCRAM_GOOD;
	if (result == SCRAM_GOOD)
		memcpy(client_key_out, key, SCRAM_KEY_SIZE);
done:
	explicit_bzero(key, sizeof(key));
	explicit_bzero(signature, sizeof(signature));
	return result;
}

void scram_server_free(struct scram_server *server)
{
	buffer_free(&server->gs2_header);
	buffer_free(&server->auth_message);
	buffer_free(&server->nonce);
	memset(server, 0, sizeof(*server));
}
