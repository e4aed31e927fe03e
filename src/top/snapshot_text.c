/* SPDX-License-Identifier: ISC */
#include "top/snapshot_text.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

enum { STATUS_NOT_CONNECTED = 2, WIDTH = 80, WIDTH_LEAST = 20, WIDTH_MOST = 1000 };

static size_t page_width(void)
{
	const char *text = getenv("COLUMNS");
	long long columns;

	if (!text || !text_to_integer(text, &columns) || columns < 1)
		return WIDTH;
	if (columns < WIDTH_LEAST)
		return WIDTH_LEAST;
	return columns < WIDTH_MOST ? (size_t)columns : WIDTH_MOST;
}

static void wait_for(const struct session *session, usec_t deadline, usec_t now, bool *ready)
{
	struct pollfd polled = {0};
	usec_t wait = deadline - now;

	if (wait > USEC_PER_SEC)
		wait = USEC_PER_SEC;
	polled.fd = console_link_socket(&session->link, &polled.events);
	poll(&polled, 1, wait > 0 ? (int)(wait / USEC_PER_MSEC) + 1 : 0);
	*ready = polled.revents != 0;
}

/* Ask for the topics until all are answered, and again at `until`; false if the connection fails. */
static bool ask(struct session *session, unsigned topics, usec_t until)
{
	bool ready = false;
	usec_t deadline;

	for (;;) {
		const usec_t now = clock_monotonic();
		const enum session_event event =
			session_turn(session, topics, ready, now, &deadline);

		if (event == SESSION_NEEDS_PASSWORD && !session_prompt(session, now))
			return false;
		if (event == SESSION_CHANGED && session->link.state == CONSOLE_LINK_DOWN)
			return false;
		if (session->link.state == CONSOLE_LINK_READY && now >= until &&
			feed_is_complete(&session->feed, topics))
			return true;
		wait_for(session, deadline, now, &ready);
	}
}

static bool print(const struct session *session)
{
	const struct compose_source source = session_source(session, clock_monotonic());
	struct page page = {0};
	enum page_style style;

	compose_snapshot(&page, &source, page_width());
	for (size_t i = 0; i < page_length(&page); i++)
		puts(page_text(&page, i, &style));
	page_free(&page);
	return fflush(stdout) == 0;
}

int snapshot_text_run(struct session *session, bool repeat)
{
	const unsigned topics = compose_snapshot_topics();

	do {
		if (!ask(session, topics, 0) ||
			!ask(session, TOPIC_BIT(TOPIC_STATS),
				clock_monotonic() + session->options->interval)) {
			session_complain(session);
			return STATUS_NOT_CONNECTED;
		}
		if (!print(session))
			return EXIT_FAILURE;
		if (repeat)
			puts("");
	} while (repeat);
	return EXIT_SUCCESS;
}
