/* SPDX-License-Identifier: ISC */
#include "top/session.h"

#include <bsd/readpassphrase.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "top/printable.h"

void session_begin(struct session *session, struct top_options *options, usec_t now)
{
	const char *const *values = options->values;

	memset(session, 0, sizeof(*session));
	session->options = options;
	session->feed.interval = options->interval;
	snprintf(session->place, sizeof(session->place), "%.200s",
		values[TOP_HOST] ? values[TOP_HOST] : "the console");
	console_link_begin(&session->link, options->keywords, options->values, now);
}

void session_end(struct session *session)
{
	console_link_end(&session->link);
	feed_free(&session->feed);
	rates_free(&session->rates);
	holds_free(&session->holds);
	session->options->values[TOP_PASSWORD] = NULL;
	explicit_bzero(session->password, sizeof(session->password));
}

static void note_place(struct session *session)
{
	const char *host, *port;

	if (!session->link.connection)
		return;
	host = PQhost(session->link.connection);
	port = PQport(session->link.connection);
	if (host && host[0])
		snprintf(session->place, sizeof(session->place),
			strchr(host, ':') ? "[%.200s]:%.16s" : "%.200s:%.16s", host,
			port ? port : "");
}

static void take_answer(struct session *session, usec_t now)
{
	feed_take(&session->feed, session->asked, &session->link.answer, now);
	if (session->asked == TOPIC_STATS)
		rates_take(&session->rates, feed_table(&session->feed, TOPIC_STATS), now);
	if (session->asked == TOPIC_CLIENTS)
		holds_take(&session->holds, feed_table(&session->feed, TOPIC_CLIENTS), now);
}

static enum session_event take_event(
	struct session *session, enum console_link_event event, usec_t now)
{
	switch (event) {
	case CONSOLE_LINK_CONNECTED:
		session->met = true;
		feed_renew(&session->feed);
		return SESSION_CHANGED;
	case CONSOLE_LINK_ANSWERED:
		take_answer(session, now);
		return SESSION_NOTHING;
	case CONSOLE_LINK_REFUSED:
		feed_refuse(&session->feed, session->asked, session->link.why);
		return SESSION_NOTHING;
	case CONSOLE_LINK_LOST:
		return SESSION_CHANGED;
	case CONSOLE_LINK_NEEDS_PASSWORD:
		return SESSION_NEEDS_PASSWORD;
	case CONSOLE_LINK_NOTHING:
		break;
	}
	return SESSION_NOTHING;
}

enum session_event session_turn(
	struct session *session, unsigned wanted, bool ready, usec_t now, usec_t *deadline)
{
	const enum console_link_event event = console_link_turn(&session->link, ready, now);
	enum session_event result = take_event(session, event, now);
	usec_t due = INT64_MAX;

	note_place(session);
	if (session->link.state == CONSOLE_LINK_READY) {
		session->asked = feed_next(&session->feed, wanted, now, &due);
		if (session->asked < TOPICS) {
			feed_asked(&session->feed, session->asked, now);
			console_link_ask(&session->link, feed_query(session->asked), now);
		} else if (event == CONSOLE_LINK_ANSWERED || event == CONSOLE_LINK_REFUSED) {
			result = SESSION_CHANGED; /* everything that was due has come */
		}
	}
	*deadline = console_link_deadline(&session->link);
	if (due < *deadline)
		*deadline = due;
	return result;
}

bool session_prompt(struct session *session, usec_t now)
{
	if (session->options->no_password || session->prompted ||
		!readpassphrase("Password: ", session->password, sizeof(session->password),
			RPP_REQUIRE_TTY))
		return false;
	session->prompted = true;
	session->link.attempts = 0;
	session->options->values[TOP_PASSWORD] = session->password;
	console_link_retry(&session->link, now);
	return true;
}

void session_complain(const struct session *session)
{
	/* A byte takes four columns at most, as \xNN. */
	char why[4 * CONSOLE_LINK_WHY_SIZE];

	printable_write(why, sizeof(why), session->link.why, sizeof(why));
	fprintf(stderr, "%s: %s\n", session->options->program, why);
}

struct compose_source session_source(const struct session *session, usec_t now)
{
	return (struct compose_source){
		.feed = &session->feed,
		.rates = &session->rates,
		.holds = &session->holds,
		.link = &session->link,
		.place = session->place,
		.now = now,
	};
}
