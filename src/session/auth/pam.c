/* SPDX-License-Identifier: ISC */
/* The client sends a clear-text password, which PAM checks. */
#include "base/text.h"
#include "session/auth/exchange.h"
#include "session/auth/external_auth.h"
#include "session/auth/method.h"
#include "session/auth/pam_check.h"
#include "wire/message.h"

static const struct external_auth_method pam_method = {"PAM", pam_check};

static enum auth_result begin(struct client_link *client)
{
	exchange_ask(client, AUTH_CLEARTEXT, NULL, 0);
	return AUTH_PENDING;
}

static enum auth_result answer(struct client_link *client, const uint8_t *body, size_t length)
{
	char remote[ADDRESS_TEXT_SIZE];
	struct external_auth *request;

	/* A second password is refused while the first one is checked. */
	if (client->login->external_auth || !exchange_is_password(body, length))
		return exchange_refuse(client);
	request = external_auth_new(client->user->name, body, length - 1);
	if (!request)
		return exchange_refuse(client);
	text_copy(request->remote, sizeof(request->remote),
		address_host(&client->link.remote, remote));
	if (!external_auth_start(client,
		    &link_registry(&client->link)->process->registries[0]->pam, &pam_method,
		    request))
		return exchange_refuse(client);
	return AUTH_PENDING;
}

const struct auth_method auth_pam = {
	.name = "pam",
	.counted = LOGIN_PAM,
	.refusal = REASON_PAM_AUTHENTICATION_FAILED,
	.external = "PAM",
	.load = pam_check_load,
	.begin = begin,
	.answer = answer,
};
