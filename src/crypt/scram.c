/* SPDX-License-Identifier: ISC */
/*
 * SCRAM-SHA-256, both sides.
 *
 * The messages, with the names that RFC 5802 section 7 gives their parts:
 *
 *	client-first  gs2-header client-first-bare    n,, n=,r=CNONCE
 *	server-first                                  r=CNONCE SNONCE,s=SALT,i=ITERATIONS
 *	client-final  without-proof ,p=PROOF          c=biws,r=CNONCE SNONCE,p=PROOF
 *	server-final                                  v=SIGNATURE
 *
 * What is signed is AuthMessage: client-first-bare, server-first and client-final-without-proof,
 * with commas between. It is gathered as the messages go by.
 *
 * Messages are read by a cursor over attributes, which knows its end and expects each attribute
 * in its place: missing, empty, doubled and reordered ones all fail the same way.
 */
#include "crypt/scram.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "crypt/base64.h"
#include "crypt/digest.h"
#include "crypt/saslprep.h"

enum {
	NONCE_TEXT_SIZE = BASE64_SIZE(SCRAM_NONCE_SIZE),
	KEY_TEXT_SIZE = BASE64_SIZE(SCRAM_KEY_SIZE),
	SALT_TEXT_SIZE = BASE64_SIZE(SCRAM_MAX_SALT),
};

/* --- Reading messages ------------------------------------------------------------------------ */

struct span {
	const char *at;
	size_t length;
};

struct cursor {
	const char *at, *end;
};

static struct cursor cursor_over(const char *message, size_t length)
{
	return (struct cursor){.at = message, .end = message + length};
}

/* A NUL is in no SCRAM message, and no honest one is longer than this. */
static bool is_acceptable(const char *message, size_t length)
{
	return length > 0 && length <= SCRAM_MAX_MESSAGE &&
		memchr(message, '\0', length) == NULL;
}

static size_t cursor_left(const struct cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

/* Step over this very text. */
static bool cursor_skip(struct cursor *cursor, const char *text)
{
	size_t length = strlen(text);

	if (cursor_left(cursor) < length || memcmp(cursor->at, text, length) != 0)
		return false;
	cursor->at += length;
	return true;
}

/* What stands before the next comma or the end. The comma stays. */
static struct span cursor_value(struct cursor *cursor)
{
	struct span value = {.at = cursor->at, .length = cursor_left(cursor)};
	const char *comma = memchr(cursor->at, ',', value.length);

	if (comma != NULL)
		value.length = (size_t)(comma - cursor->at);
	cursor->at += value.length;
	return value;
}

/* The value of the attribute that must come now: "r=VALUE". */
static bool cursor_attribute(struct cursor *cursor, const char *name, struct span *value)
{
	if (!cursor_skip(cursor, name))
		return false;
	*value = cursor_value(cursor);
	return true;
}

/*
 * Skip extensions up to the end, or up to the text `until`. They are optional by definition, but
 * the letters that RFC 5802 gives a meaning are not extensions wherever they stand.
 */
static bool cursor_skip_extensions(struct cursor *cursor, const char *until)
{
	while (cursor_left(cursor) > 0) {
		struct cursor ahead = *cursor;
		char name;

		if (until != NULL && cursor_skip(&ahead, until))
			return true;
		if (!cursor_skip(cursor, ",") || cursor_left(cursor) < strlen("x=y"))
			return false;
		name = *cursor->at++;
		if (!((name >= 'a' && name <= 'z') || (name >= 'A' && name <= 'Z')) ||
			strchr("aceimnprsv", name) != NULL)
			return false;
		if (!cursor_skip(cursor, "=") || cursor_value(cursor).length == 0)
			return false;
	}
	return until == NULL;
}

/* Printable characters; there can be no comma in an attribute. */
static bool is_nonce(struct span nonce)
{
	if (nonce.length == 0 || nonce.length > SCRAM_MAX_NONCE)
		return false;
	for (size_t i = 0; i < nonce.length; i++) {
		if (nonce.at[i] < '!' || nonce.at[i] > '~')
			return false;
	}
	return true;
}

static bool read_number(struct span digits, uint32_t most, uint32_t *out)
{
	uint64_t number = 0;

	/* Ten digits cannot overflow, and what is longer is too large. */
	if (digits.length == 0 || digits.length > 10 || digits.at[0] == '0')
		return false;
	for (size_t i = 0; i < digits.length; i++) {
		if (digits.at[i] < '0' || digits.at[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(digits.at[i] - '0');
	}
	if (number > most)
		return false;
	*out = (uint32_t)number;
	return true;
}

static bool read_salt(struct span text, uint8_t out[SCRAM_MAX_SALT], size_t *length)
{
	ssize_t bytes = base64_decode(text.at, text.length, out, SCRAM_MAX_SALT);

	if (bytes <= 0)
		return false;
	*length = (size_t)bytes;
	return true;
}

static bool read_key(struct span text, uint8_t out[SCRAM_KEY_SIZE])
{
	return base64_decode(text.at, text.length, out, SCRAM_KEY_SIZE) == SCRAM_KEY_SIZE;
}

/* --- Writing messages ------------------------------------------------------------------------ */

static void append_text(struct buffer *out, const char *text)
{
	(void)buffer_append(out, text, strlen(text));
}

static void append_key(struct buffer *out, const uint8_t key[SCRAM_KEY_SIZE])
{
	char text[KEY_TEXT_SIZE];

	(void)base64_encode(key, SCRAM_KEY_SIZE, text, sizeof(text));
	append_text(out, text);
	explicit_bzero(text, sizeof(text));
}

static void append_nonce(struct buffer *out, const uint8_t nonce[SCRAM_NONCE_SIZE])
{
	char text[NONCE_TEXT_SIZE];

	(void)base64_encode(nonce, SCRAM_NONCE_SIZE, text, sizeof(text));
	append_text(out, text);
}

/* The c= value: the gs2-header and the channel binding data behind it. */
static bool append_binding(struct buffer *out, const void *gs2_header, size_t header_length,
	const struct scram_binding *binding)
{
	/* A certificate's digest has at most 64 bytes. */
	uint8_t bound[256];
	char text[BASE64_SIZE(sizeof(bound))];
	size_t length = binding->type != NULL ? binding->length : 0;

	if (header_length > sizeof(bound) || length > sizeof(bound) - header_length)
		return false;
	memcpy(bound, gs2_header, header_length);
	if (length > 0)
		memcpy(bound + header_length, binding->data, length);
	(void)base64_encode(bound, header_length + length, text, sizeof(text));
	append_text(out, text);
	return true;
}

/* --- Keys ------------------------------------------------------------------------------------ */

static bool hmac(const uint8_t key[SCRAM_KEY_SIZE], const void *data, size_t length,
	uint8_t out[SCRAM_KEY_SIZE])
{
	return digest_hmac_sha256(key, data, length, out);
}

static bool sha256(const uint8_t in[SCRAM_KEY_SIZE], uint8_t out[SCRAM_KEY_SIZE])
{
	const struct digest_piece piece = {in, SCRAM_KEY_SIZE};

	return digest_of(DIGEST_SHA256, &piece, 1, out);
}

static void exclusive_or(uint8_t out[SCRAM_KEY_SIZE], const uint8_t with[SCRAM_KEY_SIZE])
{
	for (size_t i = 0; i < SCRAM_KEY_SIZE; i++)
		out[i] ^= with[i];
}

/* What stands before the separator; `text` moves behind it. */
static bool split_off(const char **text, char separator, struct span *out)
{
	const char *end = strchr(*text, separator);

	if (end == NULL)
		return false;
	*out = (struct span){.at = *text, .length = (size_t)(end - *text)};
	*text = end + 1;
	return true;
}

bool scram_secret_parse(const char *text, struct scram_secret *out)
{
	static const char prefix[] = SCRAM_MECHANISM "$";
	struct scram_secret secret = {0};
	struct span iterations, salt, stored_key, server_key;
	bool good;

	if (strncmp(text, prefix, strlen(prefix)) != 0)
		return false;
	text += strlen(prefix);
	if (!split_off(&text, ':', &iterations) || !split_off(&text, '$', &salt) ||
		!split_off(&text, ':', &stored_key))
		return false;
	server_key = (struct span){.at = text, .length = strlen(text)};

	good = read_number(iterations, INT_MAX, &secret.iterations) &&
		read_salt(salt, secret.salt, &secret.salt_length) &&
		read_key(stored_key, secret.stored_key) &&
		read_key(server_key, secret.server_key);
	if (good)
		*out = secret;
	explicit_bzero(&secret, sizeof(secret));
	return good;
}

bool scram_derive(const char *password, const uint8_t *salt, size_t salt_length,
	uint32_t iterations, struct scram_keys *out)
{
	static const char client_label[] = "Client Key", server_label[] = "Server Key";
	uint8_t salted[SCRAM_KEY_SIZE];
	char *prepared;
	bool good = false;

	if (iterations == 0 || iterations > INT_MAX || salt_length > SCRAM_MAX_SALT)
		return false;
	prepared = saslprep(password);
	if (prepared == NULL)
		return false;
	if (strlen(prepared) <= INT_MAX) {
		good = PKCS5_PBKDF2_HMAC(prepared, (int)strlen(prepared), salt,
			       (int)salt_length, (int)iterations, EVP_sha256(), sizeof(salted),
			       salted) == 1 &&
			hmac(salted, client_label, strlen(client_label), out->client_key) &&
			sha256(out->client_key, out->stored_key) &&
			hmac(salted, server_label, strlen(server_label), out->server_key);
	}
	explicit_bzero(salted, sizeof(salted));
	explicit_bzero(prepared, strlen(prepared));
	free(prepared);
	return good;
}

bool scram_secret_accepts(const struct scram_secret *secret, const struct scram_keys *keys)
{
	return CRYPTO_memcmp(secret->server_key, keys->server_key, SCRAM_KEY_SIZE) == 0;
}

bool scram_secret_has_client_key(
	const struct scram_secret *secret, const uint8_t client_key[SCRAM_KEY_SIZE])
{
	uint8_t stored_key[SCRAM_KEY_SIZE];
	const bool good = sha256(client_key, stored_key) &&
		CRYPTO_memcmp(stored_key, secret->stored_key, SCRAM_KEY_SIZE) == 0;

	explicit_bzero(stored_key, sizeof(stored_key));
	return good;
}

/* --- As a server ----------------------------------------------------------------------------- */

/*
 * The gs2-header: "n" no channel binding, "y" the client thinks that we have none, "p" bound. The
 * second field, to act as somebody else, must be empty.
 */
static bool read_gs2_header(struct cursor *cursor, const struct scram_server *server)
{
	if (server->binding.type == NULL)
		return cursor_skip(cursor, "n,,") ||
			(!server->offers_binding && cursor_skip(cursor, "y,,"));
	return cursor_skip(cursor, "p=") && cursor_skip(cursor, server->binding.type) &&
		cursor_skip(cursor, ",,");
}

enum scram_result scram_server_first(struct scram_server *server, const char *message,
	size_t length, const uint8_t nonce[SCRAM_NONCE_SIZE], const uint8_t *salt,
	size_t salt_length, uint32_t iterations, struct buffer *out)
{
	struct cursor cursor = cursor_over(message, length);
	char salt_text[SALT_TEXT_SIZE];
	struct span name, client_nonce;
	size_t header, first;

	if (server->auth_message.length > 0 || !is_acceptable(message, length) ||
		!read_gs2_header(&cursor, server))
		return SCRAM_REFUSED;
	header = (size_t)(cursor.at - message);
	/* The name is not looked at: the one in the startup packet counts. */
	if (!cursor_attribute(&cursor, "n=", &name) ||
		!cursor_attribute(&cursor, ",r=", &client_nonce) || !is_nonce(client_nonce) ||
		!cursor_skip_extensions(&cursor, NULL))
		return SCRAM_REFUSED;
	if (base64_encode(salt, salt_length, salt_text, sizeof(salt_text)) == 0)
		return SCRAM_REFUSED;

	(void)buffer_append(&server->gs2_header, message, header);
	(void)buffer_append(&server->nonce, client_nonce.at, client_nonce.length);
	append_nonce(&server->nonce, nonce);

	first = out->length;
	append_text(out, "r=");
	(void)buffer_append(out, server->nonce.data, server->nonce.length);
	(void)buffer_printf(out, ",s=%s,i=%u", salt_text, (unsigned int)iterations);
	if (out->failed || server->nonce.failed || server->gs2_header.failed)
		return SCRAM_NO_MEMORY;

	(void)buffer_append(&server->auth_message, message + header, length - header);
	append_text(&server->auth_message, ",");
	(void)buffer_append(&server->auth_message, out->data + first, out->length - first);
	return server->auth_message.failed ? SCRAM_NO_MEMORY : SCRAM_GOOD;
}

/* Take client-final apart; `without` is the part of it that is signed. */
static bool read_client_final(const char *message, size_t length, struct span *without,
	struct span *binding, struct span *nonce, uint8_t proof[SCRAM_KEY_SIZE])
{
	struct cursor cursor = cursor_over(message, length);
	struct span proof_text;

	if (!is_acceptable(message, length) || !cursor_attribute(&cursor, "c=", binding) ||
		!cursor_attribute(&cursor, ",r=", nonce) ||
		!cursor_skip_extensions(&cursor, ",p="))
		return false;
	*without = (struct span){.at = message, .length = (size_t)(cursor.at - message)};
	return cursor_attribute(&cursor, ",p=", &proof_text) && cursor_left(&cursor) == 0 &&
		read_key(proof_text, proof);
}

static bool span_equals(struct span span, const struct buffer *buffer)
{
	return span.length == buffer->length && span.length > 0 &&
		memcmp(span.at, buffer->data, span.length) == 0;
}

/* Does c= say what the client's first message said, and the right certificate? */
static enum scram_result check_binding(const struct scram_server *server, struct span given)
{
	struct buffer expected = {0};
	enum scram_result result = SCRAM_REFUSED;

	if (append_binding(&expected, server->gs2_header.data, server->gs2_header.length,
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
	static const uint8_t nobodys_key[SCRAM_KEY_SIZE];
	bool somebody = stored_key != NULL && server_key != NULL;
	struct buffer *signed_text = &server->auth_message;
	uint8_t key[SCRAM_KEY_SIZE], signature[SCRAM_KEY_SIZE], hash[SCRAM_KEY_SIZE];
	struct span without, binding, nonce;
	enum scram_result result;

	if (!read_client_final(message, length, &without, &binding, &nonce, key) ||
		!span_equals(nonce, &server->nonce))
		return SCRAM_REFUSED;
	result = check_binding(server, binding);
	if (result != SCRAM_GOOD)
		return result;

	append_text(signed_text, ",");
	(void)buffer_append(signed_text, without.at, without.length);
	/* The exchange is over: the same nonce does not do for a second try. */
	buffer_clear(&server->nonce);
	if (signed_text->failed)
		return SCRAM_NO_MEMORY;

	/* RFC 5802 section 3: ClientKey = ClientProof XOR HMAC(StoredKey, AuthMessage) */
	result = SCRAM_NO_MEMORY;
	if (!hmac(somebody ? stored_key : nobodys_key, signed_text->data, signed_text->length,
		    signature))
		goto done;
	exclusive_or(key, signature);
	if (!sha256(key, hash) ||
		!hmac(somebody ? server_key : nobodys_key, signed_text->data,
			signed_text->length, signature))
		goto done;

	result = SCRAM_REFUSED;
	if (CRYPTO_memcmp(hash, somebody ? stored_key : nobodys_key, SCRAM_KEY_SIZE) != 0 ||
		!somebody)
		goto done;
	append_text(out, "v=");
	append_key(out, signature);
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

/* --- As a client ----------------------------------------------------------------------------- */

static void append_gs2_header(struct buffer *out, const struct scram_binding *binding)
{
	if (binding->type != NULL)
		(void)buffer_printf(out, "p=%s,,", binding->type);
	else
		append_text(out, "n,,");
}

enum scram_result scram_client_first(
	struct scram_client *client, const uint8_t nonce[SCRAM_NONCE_SIZE], struct buffer *out)
{
	append_nonce(&client->nonce, nonce);
	append_text(&client->auth_message, "n=,r=");
	(void)buffer_append(&client->auth_message, client->nonce.data, client->nonce.length);

	append_gs2_header(out, &client->binding);
	(void)buffer_append(out, client->auth_message.data, client->auth_message.length);
	return client->nonce.failed || client->auth_message.failed || out->failed
		? SCRAM_NO_MEMORY
		: SCRAM_GOOD;
}

/* The server's nonce must be ours and then something of its own. */
static bool extends_ours(struct span nonce, const struct buffer *ours)
{
	return ours->length > 0 && nonce.length > ours->length &&
		memcmp(nonce.at, ours->data, ours->length) == 0;
}

enum scram_result scram_client_challenge(
	struct scram_client *client, const char *message, size_t length)
{
	struct cursor cursor = cursor_over(message, length);
	struct span nonce, salt, iterations;

	if (client->iterations != 0 || !is_acceptable(message, length) ||
		!cursor_attribute(&cursor, "r=", &nonce) ||
		!cursor_attribute(&cursor, ",s=", &salt) ||
		!cursor_attribute(&cursor, ",i=", &iterations) ||
		!cursor_skip_extensions(&cursor, NULL))
		return SCRAM_REFUSED;
	if (!is_nonce(nonce) || !extends_ours(nonce, &client->nonce) ||
		!read_salt(salt, client->salt, &client->salt_length) ||
		!read_number(iterations, SCRAM_MAX_ITERATIONS, &client->iterations))
		return SCRAM_REFUSED;

	(void)buffer_append(&client->nonce, nonce.at + client->nonce.length,
		nonce.length - client->nonce.length);
	append_text(&client->auth_message, ",");
	(void)buffer_append(&client->auth_message, message, length);
	return client->nonce.failed || client->auth_message.failed ? SCRAM_NO_MEMORY
								   : SCRAM_GOOD;
}

/* Write c= and r=, and put them behind what is signed. */
static bool append_without_proof(struct scram_client *client, struct buffer *out)
{
	struct buffer gs2_header = {0};
	size_t start = out->length;
	bool good;

	append_gs2_header(&gs2_header, &client->binding);
	append_text(out, "c=");
	good = !gs2_header.failed &&
		append_binding(out, gs2_header.data, gs2_header.length, &client->binding);
	buffer_free(&gs2_header);
	append_text(out, ",r=");
	(void)buffer_append(out, client->nonce.data, client->nonce.length);
	if (!good || out->failed)
		return false;
	append_text(&client->auth_message, ",");
	return buffer_append(&client->auth_message, out->data + start, out->length - start);
}

enum scram_result scram_client_answer(
	struct scram_client *client, const struct scram_keys *keys, struct buffer *out)
{
	const struct buffer *signed_text = &client->auth_message;
	uint8_t stored_key[SCRAM_KEY_SIZE], proof[SCRAM_KEY_SIZE];
	bool good;

	if (client->iterations == 0 || client->answered)
		return SCRAM_REFUSED;
	if (!append_without_proof(client, out))
		return SCRAM_NO_MEMORY;

	/* RFC 5802 section 3: ClientProof = ClientKey XOR HMAC(StoredKey, AuthMessage) */
	good = sha256(keys->client_key, stored_key) &&
		hmac(stored_key, signed_text->data, signed_text->length, proof) &&
		hmac(keys->server_key, signed_text->data, signed_text->length,
			client->server_signature);
	if (good) {
		exclusive_or(proof, keys->client_key);
		append_text(out, ",p=");
		append_key(out, proof);
		client->answered = true;
	}
	explicit_bzero(stored_key, sizeof(stored_key));
	explicit_bzero(proof, sizeof(proof));
	return good && !out->failed ? SCRAM_GOOD : SCRAM_NO_MEMORY;
}

enum scram_result scram_client_verify(
	struct scram_client *client, const char *message, size_t length)
{
	struct cursor cursor = cursor_over(message, length);
	uint8_t signature[SCRAM_KEY_SIZE];
	struct span value;

	if (!client->answered || !is_acceptable(message, length) ||
		!cursor_attribute(&cursor, "v=", &value) ||
		!cursor_skip_extensions(&cursor, NULL) || !read_key(value, signature))
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
