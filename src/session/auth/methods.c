/* SPDX-License-Identifier: ISC */
#include <openssl/crypto.h>
#include <string.h>

#include "session/auth/method.h"
#include "session/ending.h"
#include "wire/message.h"
#include "wire/writer.h"

const struct auth_method *auth_method_of(enum auth_type type)
{
	switch (type) {
	case AUTH_TYPE_ANY:
		return &auth_any;
	case AUTH_TYPE_TRUST:
		return &auth_trust;
	case AUTH_TYPE_PLAIN:
		return &auth_plain;
	case AUTH_TYPE_MD5:
		return &auth_md5;
	case AUTH_TYPE_SCRAM_SHA_256:
		return &auth_scram;
	case AUTH_TYPE_CERT:
		return &auth_cert;
	case AUTH_TYPE_HBA:
	case AUTH_TYPE_LDAP:
	case AUTH_TYPE_PAM:
		break; /* refused when the configuration is read */
	}
	return NULL;
}

bool auth_ask(struct client_link *client, unsigned request, const void *data, size_t length)
{
	struct buffer message;
	bool sent;

	buffer_init(&message);
	writer_authentication(&message, (enum authentication_request)request, data, length);
	sent = !message.failed &&
		stream_send_bytes(&client->link.stream, message.data, message.length) !=
			STREAM_SENT_NOT;
	buffer_free(&message);
	if (!sent)
		client_close_for(client, REASON_UNEXPECTED_EOF);
	return sent;
}

const char *auth_secret(const struct client_link *client)
{
	const char *secret = client->user ? client->user->secret : NULL;

	return secret && secret[0] != '\0' ? secret : NULL;
}

bool auth_equal(const char *a, const char *b)
{
	const size_t length = strlen(a);

	return length == strlen(b) && CRYPTO_memcmp(a, b, length) == 0;
}

enum auth_result auth_refuse(struct client_link *client)
{
	client->login->refusal = client->login->method->refusal;
	return AUTH_REFUSED;
}
