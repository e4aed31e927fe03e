/* SPDX-License-Identifier: ISC */
/* The client sends a clear-text password, which an LDAP server checks. */
#include "session/auth/exchange.h"
#include "session/auth/external_auth.h"
#include "session/auth/ldap_check.h"
#include "session/auth/method.h"
#include "wire/message.h"

static const struct external_auth_method ldap_method = {"LDAP", ldap_check};

/*
 * The LDAP options: those of the HBA rule if there is one, else auth_ldap_options. May be NULL.
 */
static const char *options_of(const struct client_link *client)
{
	const struct hba_rule *rule = client->login->rule;

	return rule ? rule->options
		    : link_registry(&client->link)->process->settings->auth_ldap_options;
}

static enum auth_result refuse_for(struct client_link *client, enum reason reason)
{
	client->login->refusal = reason;
	return AUTH_REFUSED;
}

static enum auth_result begin(struct client_link *client)
{
	if (!ldap_check_is_built_in)
		return refuse_for(client, REASON_LDAP_NOT_SUPPORTED);
	if (!options_of(client))
		return refuse_for(client, REASON_LDAP_OPTIONS_NULL);
	exchange_ask(client, AUTH_CLEARTEXT, NULL, 0);
	return AUTH_PENDING;
}

/*
 * Make a request with the options that are in force now. Returns NULL, after a log line, when
 * they are invalid, and without one when out of memory.
 */
static struct external_auth *make_request(
	struct client_link *client, const uint8_t *password, size_t length)
{
	const char *options = options_of(client);
	struct external_auth *request = external_auth_new(client->user->name, password, length);

	if (!request)
		return NULL;
	if (options && strlen(options) > LDAP_OPTIONS_MAX)
		link_log_repeated(&client->link, LEVEL_WARNING,
			"LDAP options are longer than %d bytes: the rest is not used",
			LDAP_OPTIONS_MAX);
	if (options &&
		ldap_options_parse(options, &request->ldap, request->why, sizeof(request->why)))
		return request;
	link_log_repeated(&client->link, LEVEL_WARNING, "%s",
		options ? request->why : "auth_ldap_options is null");
	external_auth_free(request);
	return NULL;
}

static enum auth_result answer(struct client_link *client, const uint8_t *body, size_t length)
{
	struct external_auth *request;

	/* A second password is refused while the first one is checked. */
	if (client->login->external_auth || !exchange_is_password(body, length))
		return exchange_refuse(client);
	request = make_request(client, body, length - 1);
	if (!request ||
		!external_auth_start(client,
			&link_registry(&client->link)->process->registries[0]->ldap,
			&ldap_method, request))
		return exchange_refuse(client);
	return AUTH_PENDING;
}

const struct auth_method auth_ldap = {
	.name = "ldap",
	.counted = LOGIN_LDAP,
	.load = ldap_check_load,
	.refusal = REASON_LDAP_AUTHENTICATION_FAILED,
	.external = "LDAP",
	.begin = begin,
	.answer = answer,
};
