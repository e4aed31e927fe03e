/* SPDX-License-Identifier: ISC */
#include "session/auth/refusal.h"

#include <event2/event.h>

#include "session/auth/exchange.h"

static void on_time(evutil_socket_t fd, short what, void *argument)
{
	struct client_link *client = argument;

	(void)fd;
	(void)what;
	refusal_cancel(client->login);
	client->login->steps->proceed(client, exchange_refuse(client));
}

/* A libevent timer, since the deadlines of the loop are too coarse for a few milliseconds. */
enum auth_result refusal_at(struct client_link *client, usec_t time)
{
	struct loop *loop = client->link.stream.loop;
	const usec_t left = time - loop_now(loop);
	const struct timeval wait = {left / USEC_PER_SEC, left % USEC_PER_SEC};
	struct event *timer;

	if (left <= 0)
		return exchange_refuse(client);
	timer = event_new(loop->base, -1, 0, on_time, client);
	if (!timer || event_add(timer, &wait) != 0) {
		if (timer)
			event_free(timer);
		return exchange_refuse(client);
	}
	client->login->held_refusal = timer;
	return AUTH_PENDING;
}

bool refusal_is_pending(const struct login *login)
{
	return login->held_refusal != NULL;
}

void refusal_cancel(struct login *login)
{
	if (login->held_refusal)
		event_free(login->held_refusal);
	login->held_refusal = NULL;
}
