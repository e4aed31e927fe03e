/* SPDX-License-Identifier: ISC */
#include "session/link/login_counts.h"

#include "model/registry.h"
#include "model/statistics/reason_facts.h"
#include "session/link/login.h"

static struct counters *counters_for(const struct client_link *client)
{
	return &link_registry(&client->link)->counters;
}

static void count_time(const struct client_link *client, enum login_outcome outcome)
{
	const struct auth_method *method = client->login->method;
	/* A local operator logs in to the console without a method. */
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
	const enum client_closing closing = reason_client_closed(reason);

	if (closing == CLIENT_CLOSED_LOGIN_TIMEOUT)
		return LOGIN_TIMEOUT;
	if (closing == CLIENT_CLOSED_EOF || closing == CLIENT_CLOSED_QUIT ||
		closing == CLIENT_CLOSED_RESET)
		return LOGIN_CLOSED;
	return LOGIN_DENIED;
}

/* A client gets the same error for a wrong password and an unknown user; the counts differ. */
static enum auth_failure exact_failure(const struct login *login, enum auth_failure failure)
{
	if (failure != AUTH_FAILED_PASSWORD)
		return failure;
	if (login->expired)
		return AUTH_FAILED_EXPIRED;
	return login->mock && !login->method->external ? AUTH_FAILED_NO_USER
						       : AUTH_FAILED_PASSWORD;
}

static void count_failure(const struct client_link *client, enum reason reason)
{
	const enum auth_failure failure = reason_auth_failed(reason);

	if (failure < AUTH_FAILURES)
		counters_for(client)->auth_failed[exact_failure(client->login, failure)]++;
}

/* A wrong message or method is a mistake of the client, but no attempt to get in. */
static bool is_guess(enum auth_failure failure)
{
	return failure == AUTH_FAILED_PASSWORD || failure == AUTH_FAILED_NO_USER ||
		failure == AUTH_FAILED_HBA;
}

void login_counts_failed(
	const struct client_link *client, enum client_state state, const struct failure *why)
{
	if (state > CLIENT_WELCOMING || !client->login)
		return;
	if (is_guess(reason_auth_failed(why->reason)))
		sources_login_failed(client);
	/* Before a method is chosen the client has not been asked to authenticate. */
	if (client->login->method) {
		count_time(client, outcome_of(why->reason));
		count_failure(client, why->reason);
	} else if (reason_auth_failed(why->reason) == AUTH_FAILED_NO_USER) {
		counters_for(client)->auth_failed[AUTH_FAILED_NO_USER]++;
	}
}
