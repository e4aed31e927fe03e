/* SPDX-License-Identifier: ISC */
/* Advice about the traffic of a database: prepared statements that are evicted, logins at its servers. */
#include "admin/advice/rules.h"

enum { PERCENT = 100 };

/* --- prepared statements ------------------------------------------------------------------ */

enum { EVICTIONS, MISSES_PERCENT, STATEMENTS_MOST, TEXTS, TEXTS_OF_WORKER };

enum {
	TEXTS_COUNTED = 1000, /* more are "at least" so many */
	TEXTS_LOOKED_AT = 10000,
};

/*
 * How many statements clients have names for, of all databases of the worker: they are not counted by
 * database.
 */
static int64_t count_texts(struct advisor *advisor, const struct registry *registry)
{
	int64_t *texts = &advisor->texts[registry->number];
	const struct statement *statement, *next;
	unsigned looked_at = 0;

	if (advisor->texts_at[registry->number] == advisor->findings.now)
		return *texts;
	advisor->texts_at[registry->number] = advisor->findings.now;
	*texts = 0;
	HASH_ITER (by_content, registry->statements.by_content, statement, next) {
		*texts += statement->names > 0;
		if (*texts == TEXTS_COUNTED || ++looked_at == TEXTS_LOOKED_AT)
			break;
	}
	return *texts;
}

static void look_at_statements(struct advisor *advisor, struct database *database)
{
	struct prepared_counts *counts = &database->prepared;
	const uint64_t hits = measures_growth(advisor, &counts->hits_meter, counts->hits);
	const uint64_t misses = measures_growth(advisor, &counts->misses_meter, counts->misses);
	const int64_t evictions = measures_rate(
		advisor, measures_growth(advisor, &counts->evictions_meter, counts->evictions));
	struct advice *finding;

	if (evictions < findings_least(ADVICE_PREPARED_EVICTIONS))
		return;
	finding = findings_note(&advisor->findings, ADVICE_PREPARED_EVICTIONS,
		&(struct finding_subject){.database = database});
	if (!finding)
		return;
	finding->figures[EVICTIONS] = evictions;
	finding->figures[MISSES_PERCENT] =
		hits + misses > 0 ? (int64_t)(misses * PERCENT / (hits + misses)) : 0;
	finding->figures[STATEMENTS_MOST] =
		advisor->registry->process->settings->max_prepared_statements;
	finding->figures[TEXTS_OF_WORKER] = advisor->registry->process->workers > 1;
	/* It is a walk: not at each sample, and once for all databases. */
	if (finding->weight == 0 || advisor->turns)
		finding->figures[TEXTS] = count_texts(advisor, database->registry);
}

/* Room for all texts, in tens; the statements of a server cost memory at PostgreSQL. */
static long long better_most(const struct advice *finding)
{
	const long long most = finding->figures[STATEMENTS_MOST],
			texts = finding->figures[TEXTS];

	return texts > most ? (texts + 9) / 10 * 10 : most * 2;
}

static void write_texts(const struct advice *finding, struct buffer *out)
{
	const long long texts = finding->figures[TEXTS];

	if (texts > finding->figures[STATEMENTS_MOST])
		buffer_printf(out,
			"Clients use %s%lld different statements in all databases%s. ",
			texts == TEXTS_COUNTED ? "at least " : "", texts,
			finding->figures[TEXTS_OF_WORKER] ? " of its worker" : "");
}

static void write_statements(const struct advice *finding, struct buffer *out)
{
	const long long most = finding->figures[STATEMENTS_MOST];

	buffer_printf(out, "Servers give up ");
	finding_write_average(out, finding->figures[EVICTIONS]);
	buffer_printf(out,
		" prepared statements a second for others, and %lld %% of the uses of statements "
		"prepare one anew. ",
		(long long)finding->figures[MISSES_PERCENT]);
	write_texts(finding, out);
	buffer_printf(out,
		"Raise max_prepared_statements from %lld to %lld, for example, or have the "
		"application use fewer texts (SHOW STATEMENTS).",
		most, better_most(finding));
}

/* --- logins at PostgreSQL ----------------------------------------------------------------- */

enum { LOGINS, CLOSED_PERCENT, CLOSED_WHY };

/* The setting that makes servers be closed for this cause; NULL: none. */
static const char *setting_of(enum server_closing cause)
{
	switch ((int)cause) {
	case SERVER_CLOSED_LIFETIME:
		return "server_lifetime";
	case SERVER_CLOSED_IDLE:
		return "server_idle_timeout";
	default:
		return NULL;
	}
}

static void look_at_logins(struct advisor *advisor, struct database *database)
{
	struct database_counters *counters = database->counters;
	uint64_t most = 0, all = 0;
	unsigned cause = SERVER_CLOSED_OTHER;
	struct advice *finding;
	int64_t opened;

	if (!counters)
		return;
	opened = measures_rate(
		advisor, measures_growth(advisor, &counters->opened, counters->server_opened));
	for (unsigned i = 0; i < SERVER_CLOSINGS; i++) {
		const uint64_t growth = measures_growth(
			advisor, &counters->closed[i], counters->server_closed[i]);

		all += growth;
		if (growth > most) {
			most = growth;
			cause = i;
		}
	}
	/* Servers that stay are no churn: a pool fills up. */
	if (opened < findings_least(ADVICE_LOGIN_CHURN) ||
		measures_rate(advisor, all) < findings_least(ADVICE_LOGIN_CHURN))
		return;
	finding = findings_note(&advisor->findings, ADVICE_LOGIN_CHURN,
		&(struct finding_subject){.database = database});
	if (!finding)
		return;
	finding->setting = setting_of((enum server_closing)cause);
	finding->figures[LOGINS] = opened;
	finding->figures[CLOSED_PERCENT] = (int64_t)(most * PERCENT / all);
	finding->figures[CLOSED_WHY] = cause;
}

static void write_logins(const struct advice *finding, struct buffer *out)
{
	const enum server_closing cause = (enum server_closing)finding->figures[CLOSED_WHY];

	finding_write_average(out, finding->figures[LOGINS]);
	buffer_printf(out,
		" connections a second are made to PostgreSQL, and as many closed, %lld %% of them "
		"because of: %s. ",
		(long long)finding->figures[CLOSED_PERCENT], server_closing_labels[cause]);
	if (finding->setting)
		buffer_printf(out, "Raise %s.", finding->setting);
	else
		buffer_printf(out, "The log has a line for each of them.");
}

/* --- all ---------------------------------------------------------------------------------- */

void database_advice_look(struct advisor *advisor, struct database *database)
{
	look_at_statements(advisor, database);
	look_at_logins(advisor, database);
}

bool database_advice_write(const struct advice *finding, bool with_names, struct buffer *out)
{
	(void)with_names;
	if (finding->kind == ADVICE_PREPARED_EVICTIONS)
		write_statements(finding, out);
	else if (finding->kind == ADVICE_LOGIN_CHURN)
		write_logins(finding, out);
	else
		return false;
	return true;
}
