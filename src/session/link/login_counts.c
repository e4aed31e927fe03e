/* SPDX-License-Identifier: ISC */
#include "session/link/login_counts.h"

#include <string.h>

#include "model/registry.h"
#include "session/link/login.h"

static struct counters *counters_for(const struct client_link *client)
{
	return &link_registry(&client->link)->counters;
}

static void count_time(const struct client_link *client, enum login_outcome outcome)
{
	const struct auth_method *method = client->login->method;
	/* The operator at the machine itself needs no method. */
	const enum login_method counted = method ? method->counted : LOGIN_PEER;

	if (counted < LOGIN_METHODS)
		histogram_add(&counters_for(client)->logins[counted][outcome],
			loop_now(client->link.stream.loop) - client->link.connect_time);
}

void login_counts_passed(const struct client_link *client)
{
	counters_for(client)->client_logins++;
	count_time(client, LOGIN_OK);
}

static enum login_outcome outcome_of(enum reason reason)
{
	const char *label = reason_label(reason);

	if (strcmp(label, "login_timeout") == 0)
		return LOGIN_TIMEOUT;
	if (strcmp(label, "eof") == 0 || strcmp(label, "quit") == 0 ||
		strcmp(label, "reset") == 0)
		return LOGIN_CLOSED;
	return LOGIN_DENIED;
}

static const struct {
	enum reason reason;
	enum auth_failure failure;
} failures[] = {
	{REASON_PASSWORD_AUTHENTICATION_FAILED, AUTH_FAILED_PASSWORD},
	{REASON_SASL_AUTHENTICATION_FAILED, AUTH_FAILED_PASSWORD},
	{REASON_EMPTY_PASSWORD, AUTH_FAILED_PASSWORD},
	{REASON_TRUST_AUTHENTICATION_FAILED, AUTH_FAILED_PASSWORD},
	{REASON_CERTIFICATE_AUTHENTICATION_FAILED, AUTH_FAILED_PASSWORD},
	{REASON_UNIX_SOCKET_LOGIN_REJECTED, AUTH_FAILED_PASSWORD},
	{REASON_PAM_AUTHENTICATION_FAILED, AUTH_FAILED_PASSWORD},
	{REASON_LDAP_AUTHENTICATION_FAILED, AUTH_FAILED_PASSWORD},
	{REASON_NO_SUCH_USER, AUTH_FAILED_NO_USER},
	{REASON_LOGIN_REJECTED, AUTH_FAILED_HBA},
	{REASON_NO_AUTHENTICATION_METHOD, AUTH_FAILED_HBA},
	{REASON_INVALID_SASL_MECHANISM, AUTH_FAILED_METHOD},
	{REASON_LDAP_OPTIONS_NULL, AUTH_FAILED_METHOD},
	{REASON_LDAP_NOT_SUPPORTED, AUTH_FAILED_METHOD},
	{REASON_BAD_PACKET, AUTH_FAILED_MALFORMED},
	{REASON_BAD_PACKET_HEADER, AUTH_FAILED_MALFORMED},
};

/* A client is told the same of a wrong password and of an unknown user; here they are apart. */
static enum auth_failure refine(const struct login *login, enum auth_failure failure)
{
	if (failure != AUTH_FAILED_PASSWORD)
		return failure;
	if (login->expired)
		return AUTH_FAILED_EXPIRED;
	return login->mock && !login->method->authority ? AUTH_FAILED_NO_USER
							: AUTH_FAILED_PASSWORD;
}

static void count_failure(const struct client_link *client, enum reason reason)
{
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		if (failures[i].reason != reason)
			continue;
		counters_for(client)->auth_failed[refine(client->login, failures[i].failure)]++;
		return;
	}
}

void login_counts_failed(
	const struct client_link *client, enum client_state state, const struct failure *why)
{
	if (state > CLIENT_WELCOMING || !client->login)
		return;
	/* Before a method was chosen nobody had been asked for anything. */
	if (client->login->method) {
		count_time(client, outcome_of(why->reason));
		count_failure(client, why->reason);
	} else if (why->reason == REASON_NO_SUCH_USER) {
		counters_for(client)->auth_failed[AUTH_FAILED_NO_USER]++;
	}
}
