/* SPDX-License-Identifier: ISC */
#include "session/login/drop_silent_logins.h"

#include "session/link/close.h"
#include "session/link/login.h"

enum {
	/* The client to close is chosen among this many of the oldest. */
	CANDIDATES = 32,
};

/* Time for the first message; ordinary clients send it immediately. */
#define GRACE (USEC_PER_SEC / 2)

/* Time to answer a password request; the client may have to derive keys for it. */
#define ANSWER_GRACE (2 * USEC_PER_SEC)

/* Does the login wait for the client, and has it waited long enough? */
static bool is_silent(const struct client_link *client, usec_t now)
{
	if (client->link.state == CLIENT_GREETING)
		return true;
	return client->link.state != CLIENT_LOOKING_UP && !client->login->derivation &&
		!client->login->awaited && now - client->link.request_time >= ANSWER_GRACE;
}

bool drop_silent_logins_one(
	struct registry *registry, const struct client_link *except, enum client_rejection why)
{
	struct client_link *candidates[CANDIDATES];
	const usec_t now = loop_now(registry->loop);
	unsigned count = 0;
	struct link *link;

	TAILQ_FOREACH (link, &registry->logins, place) {
		if (count == CANDIDATES || now - link->connect_time < GRACE)
			break;
		if (client_of(link) != except && is_silent(client_of(link), now))
			candidates[count++] = client_of(link);
	}
	if (count == 0)
		return false;
	counters_rejected(registry, why);
	client_close_for(candidates[random_below(&registry->loop->random, count)],
		REASON_CLIENT_LOGIN_TIMEOUT);
	return true;
}
