/* SPDX-License-Identifier: ISC */
#include "top/feed.h"

#include <stdint.h>

#include "base/text.h"

static const usec_t period_of_many = 10 * USEC_PER_SEC;
static const usec_t period_of_refused = 10 * USEC_PER_SEC;
static const usec_t never = INT64_MAX;

/* What is known of a topic. */
struct fact {
	const char *query;
	usec_t least; /* not asked for more often */
	bool optional;
};

static const struct fact facts[TOPICS] = {
	[TOPIC_VERSION] = {"SHOW VERSION", 60 * USEC_PER_SEC},
	[TOPIC_STATE] = {"SHOW STATE", 0, true},
	[TOPIC_CONFIG] = {"SHOW CONFIG", 30 * USEC_PER_SEC},
	[TOPIC_LISTS] = {"SHOW LISTS", 0},
	[TOPIC_DATABASES] = {"SHOW DATABASES", 5 * USEC_PER_SEC},
	[TOPIC_STATS] = {"SHOW STATS", 0},
	[TOPIC_POOLS] = {"SHOW POOLS", 0},
	[TOPIC_ADVICE] = {"SHOW ADVICE", 0, true},
	[TOPIC_PINS] = {"SHOW PINS", 0, true},
	[TOPIC_SERVERS] = {"SHOW SERVERS", 0},
	[TOPIC_CLIENTS] = {"SHOW CLIENTS", 0},
	[TOPIC_SLOW] = {"SHOW SLOW", 0, true},
};

void feed_free(struct feed *feed)
{
	for (enum topic topic = 0; topic < TOPICS; topic++)
		table_free(&feed->answers[topic].table);
}

const char *feed_query(enum topic topic)
{
	return facts[topic].query;
}

bool feed_is_optional(enum topic topic)
{
	return facts[topic].optional;
}

usec_t feed_period(const struct feed *feed, enum topic topic)
{
	const struct feed_answer *answer = &feed->answers[topic];
	usec_t period = feed->interval;

	if (answer->refusal[0] && facts[topic].optional)
		return never;
	if (answer->refusal[0] && period < period_of_refused)
		return period_of_refused;
	if (answer->table.row_count + answer->table.left_out > FEED_MANY &&
		period < period_of_many)
		period = period_of_many;
	return period < facts[topic].least ? facts[topic].least : period;
}

static usec_t due_time(const struct feed *feed, enum topic topic)
{
	const usec_t period = feed_period(feed, topic), asked = feed->answers[topic].asked;

	if (asked == 0)
		return 0;
	return period == never ? never : asked + period;
}

enum topic feed_next(const struct feed *feed, unsigned wanted, usec_t now, usec_t *due)
{
	*due = never;
	for (enum topic topic = 0; topic < TOPICS; topic++) {
		usec_t time;

		if (!(wanted & TOPIC_BIT(topic)))
			continue;
		time = due_time(feed, topic);
		if (time <= now)
			return topic;
		if (time < *due)
			*due = time;
	}
	return TOPICS;
}

void feed_asked(struct feed *feed, enum topic topic, usec_t now)
{
	feed->answers[topic].asked = now;
}

void feed_take(struct feed *feed, enum topic topic, struct table *table, usec_t now)
{
	struct feed_answer *answer = &feed->answers[topic];

	table_free(&answer->table);
	answer->table = *table;
	*table = (struct table){0};
	answer->at = now;
	answer->refusal[0] = '\0';
}

void feed_refuse(struct feed *feed, enum topic topic, const char *why)
{
	struct feed_answer *answer = &feed->answers[topic];

	table_free(&answer->table);
	text_copy(answer->refusal, sizeof(answer->refusal), why[0] ? why : "refused");
}

void feed_renew(struct feed *feed)
{
	for (enum topic topic = 0; topic < TOPICS; topic++) {
		feed->answers[topic].asked = 0;
		feed->answers[topic].refusal[0] = '\0';
	}
}

bool feed_is_complete(const struct feed *feed, unsigned wanted)
{
	for (enum topic topic = 0; topic < TOPICS; topic++) {
		const struct feed_answer *answer = &feed->answers[topic];

		if (wanted & TOPIC_BIT(topic) &&
			(answer->asked == 0 ||
				(answer->at < answer->asked && !answer->refusal[0])))
			return false;
	}
	return true;
}

const struct table *feed_table(const struct feed *feed, enum topic topic)
{
	return &feed->answers[topic].table;
}
