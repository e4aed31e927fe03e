/* SPDX-License-Identifier: ISC */
/*
 * The answers that the screen is made of: for each SHOW the last table, when it came, and when it is
 * to be asked for again.
 *
 * A SHOW is sent only while something on the screen needs it. An answer of more than FEED_MANY rows
 * is asked for every ten seconds at most, since it costs the pooler too. A SHOW that a console may
 * not know (an optional one) is not repeated after an error; others are, after ten seconds.
 */
#ifndef PGUSHER_TOP_FEED_H
#define PGUSHER_TOP_FEED_H

#include <stdbool.h>

#include "base/clock.h"
#include "top/table.h"

/* In the order in which they are sent: those of one view follow one another. */
enum topic {
	TOPIC_VERSION,
	TOPIC_STATE,
	TOPIC_CONFIG,
	TOPIC_LISTS,
	TOPIC_DATABASES,
	TOPIC_STATS,
	TOPIC_POOLS,
	TOPIC_ADVICE,
	TOPIC_PINS,
	TOPIC_SERVERS,
	TOPIC_CLIENTS,
	TOPIC_SLOW,
	TOPICS
};

/* A set of topics. */
#define TOPIC_BIT(topic) (1U << (topic))

enum { FEED_MANY = 1000, FEED_REFUSAL_SIZE = 256 };

struct feed_answer {
	struct table table;
	usec_t at; /* when it came; 0: never */
	usec_t asked; /* when it was last asked for, on this connection; 0: not yet */
	char refusal[FEED_REFUSAL_SIZE]; /* the console's error; "": none */
};

struct feed {
	struct feed_answer answers[TOPICS];
	usec_t interval;
};

/* Free all tables. */
void feed_free(struct feed *feed);

/* The query of a topic, such as "SHOW POOLS". Static. */
const char *feed_query(enum topic topic);

/* Whether only some consoles know the topic. */
bool feed_is_optional(enum topic topic);

/*
 * Returns the topic of the set to ask for now; TOPICS if none is due. `*due` becomes the time of
 * the next one then.
 */
enum topic feed_next(const struct feed *feed, unsigned wanted, usec_t now, usec_t *due);

/* Note that a topic was asked for. */
void feed_asked(struct feed *feed, enum topic topic, usec_t now);

/* Take the rows out of `table`, which is empty afterwards. */
void feed_take(struct feed *feed, enum topic topic, struct table *table, usec_t now);

/* Keep the console's error. The rows of before are gone. */
void feed_refuse(struct feed *feed, enum topic topic, const char *why);

/* Everything is due again, now that there is a new connection; the rows stay until then. */
void feed_renew(struct feed *feed);

/* Whether every topic of the set was answered or refused on this connection. */
bool feed_is_complete(const struct feed *feed, unsigned wanted);

/* The last rows of a topic; an empty table if there are none. */
const struct table *feed_table(const struct feed *feed, enum topic topic);

/* How often the topic is asked for. */
usec_t feed_period(const struct feed *feed, enum topic topic);

#endif
