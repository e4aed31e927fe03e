/* SPDX-License-Identifier: ISC */
#include "top/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "top/ages.h"
#include "top/holders.h"
#include "top/sheet.h"

/* The shortest wait that is worth a word, in seconds. */
static const double least_wait = 0.2, critical_wait = 10;

/* The pool with the longest wait. */
struct worst {
	const struct table *pools;
	size_t row;
	const char *database, *user;
	double wait;
};

__attribute__((format(printf, 2, 3))) static void say(
	struct verdict *verdict, const char *format, ...)
{
	const size_t length = strlen(verdict->text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(verdict->text + length, sizeof(verdict->text) - length, format, arguments);
	va_end(arguments);
}

static double number(const struct table *table, size_t row, const char *column)
{
	return table_number(table, row, table_column(table, column), 0);
}

static const char *text(const struct table *table, size_t row, const char *column)
{
	const char *found = table_text(table, row, table_column(table, column));

	return found ? found : "";
}

/* --- advice ------------------------------------------------------------------------------- */

static int severity(const struct table *advice, size_t row)
{
	const char *word = text(advice, row, "severity");

	return strcmp(word, "critical") == 0 ? 2 : strcmp(word, "warning") == 0;
}

/* Returns the row that says why this pool is full; the number of rows: none does. */
static size_t find_full(const struct table *advice, const char *database, const char *user)
{
	size_t row;

	for (row = 0; row < advice->row_count; row++) {
		if (strncmp(text(advice, row, "code"), "pool_", strlen("pool_")) == 0 &&
			strcmp(text(advice, row, "database"), database) == 0 &&
			strcmp(text(advice, row, "user"), user) == 0)
			break;
	}
	return row;
}

/* The most severe row, but for an open transaction of a full pool that of the pool: its cause. */
static size_t find_advice(const struct table *advice)
{
	size_t worst = 0, full;

	for (size_t row = 1; row < advice->row_count; row++) {
		if (severity(advice, row) > severity(advice, worst))
			worst = row;
	}
	if (strcmp(text(advice, worst, "code"), "idle_transaction") != 0)
		return worst;
	full = find_full(advice, text(advice, worst, "database"), text(advice, worst, "user"));
	return full < advice->row_count && severity(advice, full) > 0 ? full : worst;
}

void verdict_take_advice(struct verdict *verdict, const struct feed *feed)
{
	const struct table *advice = feed_table(feed, TOPIC_ADVICE);
	const char *setting, *database;
	const size_t worst = find_advice(advice);

	*verdict = (struct verdict){.style = STYLE_PLAIN};
	if (severity(advice, worst) == 0)
		return;
	verdict->style = severity(advice, worst) == 2 ? STYLE_CRITICAL : STYLE_WARNING;
	setting = text(advice, worst, "setting");
	database = text(advice, worst, "database");
	if (database[0] && !strstr(text(advice, worst, "advice"), database))
		say(verdict, "%.64s/%.64s: ", database, text(advice, worst, "user"));
	say(verdict, "%.700s%s%.128s%s", text(advice, worst, "advice"), setting[0] ? " [" : "",
		setting, setting[0] ? "]" : "");
}

/* --- the pool with the longest wait ------------------------------------------------------- */

static struct worst find_worst(const struct feed *feed)
{
	struct worst worst = {.pools = feed_table(feed, TOPIC_POOLS)};

	for (size_t row = 0; row < worst.pools->row_count; row++) {
		const double wait =
			ages_wait(worst.pools, row, table_column(worst.pools, "maxwait"),
				table_column(worst.pools, "maxwait_us"));

		if (number(worst.pools, row, "cl_waiting") > 0 && wait > worst.wait) {
			worst.row = row;
			worst.wait = wait;
		}
	}
	if (worst.wait > 0) {
		worst.database = text(worst.pools, worst.row, "database");
		worst.user = text(worst.pools, worst.row, "user");
	}
	return worst;
}

static const char *action_of(enum holding holding)
{
	switch (holding) {
	case HOLDING_QUERY:
		return "runs its query";
	case HOLDING_TRANSACTION:
		return "is idle in its transaction";
	case HOLDING_PIN:
		return "has pinned a server";
	case HOLDING_SESSION:
		return "has a server for its session";
	case HOLDING_NOTHING:
		break;
	}
	return "";
}

/* What would change it. */
static const char *remedy_of(enum holding holding)
{
	switch (holding) {
	case HOLDING_TRANSACTION:
		return " [idle_transaction_timeout]";
	case HOLDING_QUERY:
		return ": that is PostgreSQL's time [query_timeout, pool_size]";
	case HOLDING_PIN:
		return " [pin_causes, max_pinned]";
	case HOLDING_SESSION:
		return " [pool_mode, pool_size]";
	case HOLDING_NOTHING:
		break;
	}
	return "";
}

static void name_oldest(
	struct verdict *verdict, const struct feed *feed, const struct holder *oldest)
{
	const struct table *clients = feed_table(feed, TOPIC_CLIENTS);
	const char *application = text(clients, oldest->client, "application_name");
	char time[32];

	sheet_write_time(time, sizeof(time), oldest->since);
	say(verdict, "; \"%.64s\" (%.64s) %s for %s%s",
		application[0] ? application : "no application_name",
		text(clients, oldest->client, "addr"), action_of(oldest->holding), time,
		remedy_of(oldest->holding));
}

/* What the sentence is about. */
struct question {
	const struct feed *feed;
	const struct holds *holds;
	struct worst worst;
};

/* The setting that advice on this full pool names. */
static void name_setting(struct verdict *verdict, const struct question *question)
{
	const struct table *advice = feed_table(question->feed, TOPIC_ADVICE);
	const size_t row = find_full(advice, question->worst.database, question->worst.user);

	if (strcmp(text(advice, row, "code"), "pool_full") == 0 &&
		text(advice, row, "setting")[0])
		say(verdict, " [%.64s]", text(advice, row, "setting"));
}

static void name_holders(struct verdict *verdict, const struct question *question)
{
	struct holders_sum sum;
	struct holders holders;

	holders_read(&holders, question->feed, question->holds);
	sum = holders_of(
		&holders, question->feed, question->worst.database, question->worst.user);
	if (sum.oldest) {
		say(verdict, ": %zu %s, %zu idle in transaction", sum.queries,
			sum.queries == 1 ? "runs a query" : "run queries", sum.transactions);
		if (sum.others > 0)
			say(verdict, ", %zu kept for sessions", sum.others);
	}
	name_setting(verdict, question);
	if (sum.oldest && sum.oldest->since >= least_wait)
		name_oldest(verdict, question->feed, sum.oldest);
	holders_free(&holders);
}

static bool is_paused(const struct feed *feed)
{
	const struct table *state = feed_table(feed, TOPIC_STATE);

	for (size_t row = 0; row < state->row_count; row++) {
		if (strcmp(text(state, row, "key"), "active") != 0 &&
			strcmp(text(state, row, "value"), "yes") == 0)
			return true;
	}
	return false;
}

/* Why no server is free. */
static void name_cause(struct verdict *verdict, const struct question *question)
{
	const struct worst *worst = &question->worst;
	const struct table *databases = feed_table(question->feed, TOPIC_DATABASES);
	const size_t row =
		table_find(databases, table_column(databases, "name"), worst->database);
	const double size = number(databases, row, "pool_size"),
		     active = number(worst->pools, worst->row, "sv_active"),
		     most = number(databases, row, "max_connections");

	if (is_paused(question->feed) || number(databases, row, "paused") != 0) {
		say(verdict, "it is paused: RESUME");
	} else if (active > 0 && active >= size) {
		if (active > 1)
			say(verdict, "all %.0f servers are", active);
		else
			say(verdict, "the only server is");
		say(verdict, " in use (pool_size %.0f)", size);
		name_holders(verdict, question);
	} else if (most > 0 && number(databases, row, "current_connections") >= most) {
		say(verdict, "max_db_connections (%.0f) is reached", most);
		name_holders(verdict, question);
	} else if (number(worst->pools, worst->row, "sv_login") > 0) {
		say(verdict, "PostgreSQL lets servers log in slowly, or not at all");
	} else if (active + number(worst->pools, worst->row, "sv_idle") == 0) {
		say(verdict, "it has no server: the log tells why logins fail");
	} else {
		say(verdict, "%.0f of %.0f servers (pool_size) %s in use", active, size,
			active == 1 ? "is" : "are");
	}
}

void verdict_write(struct verdict *verdict, const struct feed *feed, const struct holds *holds)
{
	const struct question question = {feed, holds, find_worst(feed)};
	const struct worst *worst = &question.worst;
	double waiting;
	char time[32];

	*verdict = (struct verdict){.style = STYLE_PLAIN};
	if (worst->wait < least_wait)
		return;
	verdict->style = worst->wait < critical_wait ? STYLE_WARNING : STYLE_CRITICAL;
	waiting = number(worst->pools, worst->row, "cl_waiting");
	sheet_write_time(time, sizeof(time), worst->wait);
	say(verdict, "%.64s/%.64s: %.0f %s, the longest %s: ", worst->database, worst->user,
		waiting, waiting == 1 ? "client waits" : "clients wait", time);
	name_cause(verdict, &question);
}

unsigned verdict_topics(const struct feed *feed)
{
	const struct table *lists = feed_table(feed, TOPIC_LISTS);
	const size_t row = table_find(lists, table_column(lists, "list"), "used_clients");

	if (find_worst(feed).wait < least_wait || number(lists, row, "items") > FEED_MANY)
		return 0;
	return TOPIC_BIT(TOPIC_PINS) | TOPIC_BIT(TOPIC_SERVERS) | TOPIC_BIT(TOPIC_CLIENTS);
}
