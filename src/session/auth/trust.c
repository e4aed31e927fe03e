/* SPDX-License-Identifier: ISC */
/* No password: `any` lets everybody in, `trust` whoever is known. */
#include "session/auth/exchange.h"
#include "session/auth/method.h"

static enum auth_result pass(struct client_link *client)
{
	(void)client;
	return AUTH_PASSED;
}

/* Known means: in the auth_file, or looked up, be the secret there empty. */
static enum auth_result pass_if_known(struct client_link *client)
{
	return exchange_is_known(client) ? AUTH_PASSED : exchange_refuse(client);
}

const struct auth_method auth_any = {
	.name = "any",
	.counted = LOGIN_TRUST,
	.refusal = REASON_BOUNCER_CONFIG_ERROR,
	.begin = pass,
};

const struct auth_method auth_trust = {
	.name = "trust",
	.counted = LOGIN_TRUST,
	.refusal = REASON_TRUST_AUTHENTICATION_FAILED,
	.begin = pass_if_known,
};
