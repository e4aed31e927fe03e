/* SPDX-License-Identifier: ISC */
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "session/auth/method.h"
#include "session/link/close.h"
#include "session/login/client_login.h"
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
		return &auth_hba;
	case AUTH_TYPE_LDAP:
		return &auth_ldap;
	case AUTH_TYPE_PAM:
		return &auth_pam;
	}
	return NULL;
}

static bool load(const struct auth_method *method, char *why, size_t size)
{
	char missing[256];

	if (!method->load || method->load(missing, sizeof(missing)))
		return true;
	snprintf(why, size, "authentication by %s is not possible here: %s", method->name,
		missing);
	return false;
}

bool auth_load(const struct snapshot *config, char *why, size_t size)
{
	const enum auth_type type = snapshot_settings(config)->auth_type;
	const struct hba *hba = type == AUTH_TYPE_HBA ? snapshot_hba(config) : NULL;
	const struct auth_method *method;

	for (size_t i = 0; hba && (method = auth_hba_method_at(hba, i)) != NULL; i++)
		if (!load(method, why, size))
			return false;
	return load(auth_method_of(type), why, size);
}

const char *auth_authority(const struct client_link *client, const char *user)
{
	const enum auth_type type = link_registry(&client->link)->process->settings->auth_type;
	const struct auth_method *method =
		type == AUTH_TYPE_HBA ? auth_hba_method(client, user) : auth_method_of(type);

	return method ? method->authority : NULL;
}

bool auth_is_password(const uint8_t *body, size_t length)
{
	return length > 0 && length - 1 <= CLIENT_PASSWORD_MAX &&
		memchr(body, '\0', length) == body + length - 1;
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

/* A secret that was told to the login goes before the one that its user has anyway. */
static const char *known_secret(const struct client_link *client)
{
	const struct login *login = client->login;

	if (login && login->credential)
		return login->credential->secret;
	return client->user ? client->user->secret : NULL;
}

bool auth_is_known(const struct client_link *client)
{
	return known_secret(client) != NULL;
}

const char *auth_secret(const struct client_link *client)
{
	const char *secret = known_secret(client);

	return secret && secret[0] != '\0' ? secret : NULL;
}

struct user_keys *auth_keys(struct client_link *client)
{
	struct credential *credential = client->login->credential;

	return credential ? credential_keys(credential) : user_keys(client->user);
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
