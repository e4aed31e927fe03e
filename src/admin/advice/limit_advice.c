/* SPDX-License-Identifier: ISC */
/* Advice about the limits of servers that pools share: model/cap. */
#include "admin/advice/rules.h"
#include "model/statistics/pool_figures.h"

enum { LIMIT, SERVERS, POOLS, WAITING, LONGEST, PINNED };

static const enum advice_kind kinds[CAPS] = {
	[CAP_DATABASE] = ADVICE_DATABASE_LIMIT,
	[CAP_USER] = ADVICE_USER_LIMIT,
	[CAP_PROCESS] = ADVICE_SERVER_LIMIT,
};

void limit_advice_look(struct advisor *advisor, struct pool *pool)
{
	const enum cap_kind kind = pool->wait.kind;
	const struct finding_subject subject = {
		.database = kind == CAP_DATABASE ? pool->database : NULL,
		.user = kind == CAP_USER ? pool->user : NULL,
	};
	struct advice *finding;
	usec_t longest;

	if (!pool->wait.cap || pool_waiting_clients(pool) == 0)
		return;
	finding = findings_note(&advisor->findings, kinds[kind], &subject);
	if (!finding)
		return;
	if (finding->notes == 1)
		finding->figures[POOLS] = finding->figures[WAITING] =
			finding->figures[LONGEST] = 0;
	longest = pool_queue_age(pool, advisor->findings.now);
	finding->figures[LIMIT] = cap_limit(pool, kind);
	finding->figures[SERVERS] = cap_servers(cap_of(pool, kind));
	finding->figures[PINNED] = cap_pinned(cap_of(pool, kind));
	finding->figures[POOLS]++;
	finding->figures[WAITING] += pool_waiting_clients(pool);
	if (longest > finding->figures[LONGEST])
		finding->figures[LONGEST] = longest;
}

bool limit_advice_write(const struct advice *finding, bool with_names, struct buffer *out)
{
	(void)with_names;
	if (finding->kind != ADVICE_DATABASE_LIMIT && finding->kind != ADVICE_USER_LIMIT &&
		finding->kind != ADVICE_SERVER_LIMIT)
		return false;
	buffer_printf(out, "%lld of the %lld connections that %s allows are in use",
		(long long)finding->figures[SERVERS], (long long)finding->figures[LIMIT],
		finding->setting);
	if (finding->figures[PINNED] > 0)
		buffer_printf(out, ", %lld of them pinned to clients (SHOW PINS)",
			(long long)finding->figures[PINNED]);
	buffer_printf(out, ", and ");
	finding_write_waiting(out, finding->figures[WAITING]);
	buffer_printf(out, " for one in %lld of the pools below it, the longest for ",
		(long long)finding->figures[POOLS]);
	finding_write_time(out, finding->figures[LONGEST]);
	buffer_printf(out,
		". Raise %s if PostgreSQL has room, or give each pool less (pool_size).",
		finding->setting);
	return true;
}
