/* SPDX-License-Identifier: ISC */
/* No password: `any` accepts every client, `trust` every client of a known user. */
#include "session/auth/exchange.h"
#include "session/auth/method.h"

static enum auth_result pass(struct client_link *client)
{
	(void)client;
	return AUTH_PASSED;
}

/* A known user is in the auth_file or was found by auth_query, even with an empty secret. */
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
