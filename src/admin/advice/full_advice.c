/* SPDX-License-Identifier: ISC */
/*
 * Advice about a pool in which clients wait while all servers are in use. What to do about it depends on
 * what the servers do: they run queries, and PostgreSQL has cores left or not; or they are idle, since their
 * clients keep them in a transaction, in session mode, or by something that pins them.
 */
#include <assert.h>

#include "admin/advice/rules.h"
#include "model/pool_pins.h"
#include "model/statistics/pool_figures.h"
#include "wire/pin_causes.h"

enum {
	WAITING,
	LONGEST,
	SIZE,
	/* Averages: servers of the pool by what they do, and queries at the host. */
	RUNNING,
	IN_TRANSACTION,
	IN_SESSION,
	PINNED,
	AT_HOST,
	CORES, /* of the host; 0: not known */
	BETTER_SIZE,
	IDLE_TIME, /* the longest that a transaction has been idle */
	IDLE_LIMIT, /* idle_transaction_timeout */
	MEDIAN, /* of the queries' durations */
	SLOWEST, /* the 99th percentile */
	CAUSE, /* of most pins: a bit of session_topics */
	IS_AUTO, /* pool_size = auto */
	BOUND, /* what BETTER_SIZE is bounded by: enum bound */
	BOUND_LIMIT, /* that limit */
	KIND, /* that it is shown as */
	OTHER_SAMPLES, /* in sequence in which another kind would be right */
	FIGURES
};

static_assert((int)FIGURES <= (int)FINDING_FIGURES, "a finding has room for them");

/* So many samples in sequence make advice that is shown another kind. */
enum { SAMPLES_OF_ANOTHER_KIND = 10 };

/* What bounds the size of the pool: of a cap, BOUND_CAPS and its kind. */
enum bound { BOUND_CLIENTS, BOUND_CORES, BOUND_CONNECTIONS, BOUND_CAPS };

static const char *const cap_settings[CAPS] = {
	[CAP_DATABASE] = "max_db_connections",
	[CAP_USER] = "max_user_connections",
	[CAP_PROCESS] = "max_server_connections",
};

/* --- what the servers do ------------------------------------------------------------------ */

struct use {
	unsigned running, in_transaction, in_session, pinned;
	const struct server_link *first; /* an active server; NULL: none */
	const struct server_link *idlest; /* in a transaction; NULL: none */
};

static void take_server(struct use *use, const struct server_link *server)
{
	if (!use->first)
		use->first = server;
	if (pool_server_idles_in_transaction(server)) {
		use->in_transaction++;
		if (!use->idlest || server->link.request_time < use->idlest->link.request_time)
			use->idlest = server;
	} else if (!server->link.peer || !requests_is_empty(&server->requests)) {
		use->running++;
	} else if (server->pins) {
		use->pinned++;
	} else {
		use->in_session++;
	}
}

static struct use use_of(const struct pool *pool)
{
	struct use use = {0};
	struct link *link;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place)
		take_server(&use, server_of(link));
	return use;
}

static bool is_full(const struct pool *pool)
{
	const int size = pool_size(pool);

	return pool->client_count[CLIENT_WAITING] > 0 && size > 0 &&
		pool->server_count[SERVERS_IDLE] == 0 && !pool_is_paused(pool) &&
		pool_servers(pool) - pool_logins(pool) >= (unsigned)size;
}

/* --- figures ------------------------------------------------------------------------------ */

static void set_times(struct advice *finding, const struct pool *pool)
{
	struct latency_summary times = {0};

	if (pool->latency)
		times = latency_summary(pool->latency, LATENCY_QUERY, 0);
	finding->figures[MEDIAN] = (int64_t)times.p50;
	finding->figures[SLOWEST] = (int64_t)times.p99;
}

/* Queries at the host: other pools count with all their servers, so that it is not too low. */
static int64_t queries_at_host(const struct pool *pool, const struct use *use)
{
	const unsigned own = pool->server_count[SERVERS_ACTIVE];
	const struct host *host = use->first ? use->first->at : NULL;

	return use->running + (host && host->active > own ? host->active - own : 0);
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void bound_size(struct advice *finding, int64_t size, unsigned bound, int64_t limit)
{
	if (size >= finding->figures[BETTER_SIZE])
		return;
	finding->figures[BETTER_SIZE] = size;
	finding->figures[BOUND] = bound;
	finding->figures[BOUND_LIMIT] = limit;
}

/* So many of these servers are not of the pool. */
static int64_t servers_of_others(const struct pool *pool, unsigned servers)
{
	const unsigned own = pool_servers(pool);

	return servers > own ? servers - own : 0;
}

/* Connections that the host accepts from us, less those that this process has for other pools. */
static void bound_by_connections(
	struct advice *finding, const struct pool *pool, const struct host *host)
{
	const int64_t most = (int64_t)host->capacity.max_connections - host->capacity.reserved;

	if (most > 0)
		bound_size(finding, most - servers_of_others(pool, host->servers),
			BOUND_CONNECTIONS, host->capacity.max_connections);
}

static void bound_by_caps(struct advice *finding, const struct pool *pool)
{
	for (enum cap_kind kind = 0; kind < CAPS; kind++) {
		const int64_t limit = cap_limit(pool, kind);

		if (limit > 0)
			bound_size(finding,
				limit -
					servers_of_others(
						pool, cap_servers(cap_of(pool, kind))),
				BOUND_CAPS + kind, limit);
	}
}

/*
 * A size that serves more of the clients that wait: at most twice as much, and what the cores of the host
 * can use (model/host/sizing), or another limit allows.
 */
static void set_better_size(
	struct advice *finding, const struct pool *pool, const struct use *use, int64_t cores)
{
	const int64_t size = pool_size(pool);
	const struct host *host = use->first ? use->first->at : NULL;
	const int64_t others = queries_at_host(pool, use) - use->running;

	finding->figures[BETTER_SIZE] =
		smaller(size + pool->client_count[CLIENT_WAITING], size * 2);
	finding->figures[BOUND] = BOUND_CLIENTS;
	if (cores > 0)
		bound_size(finding, cores * SIZING_PER_CORE - others, BOUND_CORES, cores);
	if (host)
		bound_by_connections(finding, pool, host);
	bound_by_caps(finding, pool);
}

/* The pool is as large as a limit allows that is not of the cores. */
static bool is_at_limit(const struct advice *finding)
{
	return finding->figures[BETTER_SIZE] <= finding->figures[SIZE] &&
		finding->figures[BOUND] >= BOUND_CONNECTIONS;
}

static void set_figures(
	struct advisor *advisor, struct advice *finding, const struct pool *pool)
{
	const struct use use = use_of(pool);
	int64_t *figures = finding->figures;

	figures[WAITING] = pool->client_count[CLIENT_WAITING];
	figures[LONGEST] = pool_queue_age(pool, advisor->findings.now);
	figures[SIZE] = pool_size(pool);
	figures[IS_AUTO] = pool_sizes_itself(pool);
	finding_average(finding, RUNNING, use.running);
	finding_average(finding, IN_TRANSACTION, use.in_transaction);
	finding_average(finding, IN_SESSION, use.in_session);
	finding_average(finding, PINNED, use.pinned);
	finding_average(finding, AT_HOST, queries_at_host(pool, &use));
	figures[CORES] = use.first ? measures_cores(advisor, use.first) : 0;
	set_better_size(finding, pool, &use, figures[CORES]);
	figures[IDLE_LIMIT] = advisor->registry->process->settings->idle_transaction_timeout;
	figures[CAUSE] = pool_main_pin(pool);
	figures[IDLE_TIME] = 0;
	if (use.idlest && use.idlest->link.peer) {
		figures[IDLE_TIME] = advisor->findings.now - use.idlest->link.request_time;
		transaction_advice_set_client(finding, client_of(use.idlest->link.peer));
	}
	set_times(finding, pool);
}

/* --- what it is --------------------------------------------------------------------------- */

/*
 * At least half of them are idle; of advice that says so already, two fifths, so that it does not change
 * with each sample.
 */
static bool are_idle(const struct advice *finding)
{
	const int64_t *figures = finding->figures;
	const int64_t idle = figures[IN_TRANSACTION] + figures[IN_SESSION] + figures[PINNED];

	if (figures[KIND] == ADVICE_POOL_FULL || figures[KIND] == ADVICE_POOL_BUSY)
		return idle >= figures[RUNNING] && idle > 0;
	return 3 * idle >= 2 * figures[RUNNING] && idle > 0;
}

/* What the figures of this sample tell. */
static enum advice_kind kind_of(const struct advice *finding)
{
	const int64_t *figures = finding->figures;

	if (are_idle(finding)) {
		if (figures[IN_TRANSACTION] >= figures[IN_SESSION] &&
			figures[IN_TRANSACTION] >= figures[PINNED])
			return ADVICE_POOL_HELD;
		return figures[PINNED] > figures[IN_SESSION] ? ADVICE_POOL_PINNED
							     : ADVICE_POOL_SESSION;
	}
	if (figures[CORES] > 0 &&
		(figures[AT_HOST] >= figures[CORES] * SIZING_PER_CORE * 1000 ||
			(figures[BETTER_SIZE] <= figures[SIZE] && !is_at_limit(finding))))
		return ADVICE_POOL_BUSY;
	return ADVICE_POOL_FULL;
}

/* Advice that is shown keeps its kind until another one has been right for some time. */
static enum advice_kind steady_kind(struct advice *finding)
{
	const enum advice_kind kind = kind_of(finding);
	int64_t *figures = finding->figures;

	if (figures[KIND] == (int64_t)kind)
		figures[OTHER_SAMPLES] = 0;
	else if (!finding->is_shown || ++figures[OTHER_SAMPLES] == SAMPLES_OF_ANOTHER_KIND) {
		figures[KIND] = kind;
		figures[OTHER_SAMPLES] = 0;
	}
	return (enum advice_kind)figures[KIND];
}

static const char *setting_of(const struct advice *finding)
{
	if (is_at_limit(finding))
		return finding->figures[BOUND] >= BOUND_CAPS
			? cap_settings[finding->figures[BOUND] - BOUND_CAPS]
			: NULL;
	return finding->figures[IS_AUTO] ? "auto_pool_max" : "pool_size";
}

void full_advice_look(struct advisor *advisor, struct pool *pool)
{
	struct advice *finding;

	if (!is_full(pool))
		return;
	finding = findings_note(
		&advisor->findings, ADVICE_POOL_FULL, &(struct finding_subject){.pool = pool});
	if (!finding)
		return;
	set_figures(advisor, finding, pool);
	findings_show_as(finding, steady_kind(finding));
	if (finding->kind == ADVICE_POOL_FULL)
		finding->setting = setting_of(finding);
}

/* --- sentences ---------------------------------------------------------------------------- */

static void write_waits(const struct advice *finding, struct buffer *out)
{
	finding_write_waiting(out, finding->figures[WAITING]);
	buffer_printf(out, " for a server, the longest for ");
	finding_write_time(out, finding->figures[LONGEST]);
	buffer_printf(out, ", and all servers of the pool (pool_size%s %lld) are in use",
		finding->figures[IS_AUTO] ? " = auto:" : "", (long long)finding->figures[SIZE]);
}

static void write_share(const struct advice *finding, unsigned figure, struct buffer *out)
{
	buffer_printf(out, ": on average ");
	finding_write_average(out, finding->figures[figure]);
}

static void write_host(const struct advice *finding, struct buffer *out)
{
	buffer_printf(out, "about ");
	finding_write_average(out, finding->figures[AT_HOST]);
	buffer_printf(out, " queries run on the %lld core%s of its machine",
		(long long)finding->figures[CORES], finding->figures[CORES] == 1 ? "" : "s");
}

static void write_remedy(const struct advice *finding, struct buffer *out)
{
	const long long size = finding->figures[SIZE], better = finding->figures[BETTER_SIZE];
	const long long limit = finding->figures[BOUND_LIMIT];

	if (is_at_limit(finding) && finding->setting)
		buffer_printf(out, "Raise %s, which allows %lld servers%s.", finding->setting,
			limit, finding->figures[IS_AUTO] ? "" : ", together with pool_size");
	else if (is_at_limit(finding))
		buffer_printf(out,
			"max_connections of PostgreSQL (%lld) has no more for this pool: raise it "
			"there, or give other pools less (pool_size).",
			limit);
	else if (finding->figures[IS_AUTO])
		buffer_printf(
			out, "Raise auto_pool_max; SHOW SIZING tells how the size was found.");
	else
		buffer_printf(out, "Raise pool_size from %lld to %lld.", size,
			better > size ? better : size + 1);
}

static void write_full(const struct advice *finding, struct buffer *out)
{
	write_share(finding, RUNNING, out);
	buffer_printf(out, " of them run queries. ");
	if (finding->figures[CORES] > 0) {
		buffer_printf(out, "PostgreSQL has room: ");
		write_host(finding, out);
		buffer_printf(out, ", which can use %lld. ",
			(long long)finding->figures[CORES] * SIZING_PER_CORE);
	} else {
		buffer_printf(out,
			"How many cores PostgreSQL has is not known (host_cores); if "
			"they are not all busy: ");
	}
	write_remedy(finding, out);
}

static void write_busy(const struct advice *finding, struct buffer *out)
{
	write_share(finding, RUNNING, out);
	buffer_printf(out, " of them run queries. PostgreSQL is busy: ");
	write_host(finding, out);
	buffer_printf(out,
		", so that a larger pool would make nothing faster. Find the slow queries "
		"(SHOW SLOW, SHOW STATS_LATENCY): half of them take more than ");
	finding_write_time(out, finding->figures[MEDIAN]);
	buffer_printf(out, ", 1 %% more than ");
	finding_write_time(out, finding->figures[SLOWEST]);
	buffer_printf(out, ".");
}

static void write_held(const struct advice *finding, bool with_names, struct buffer *out)
{
	write_share(finding, IN_TRANSACTION, out);
	buffer_printf(out, " of them are idle in a transaction, ");
	if (finding->figures[IDLE_TIME] > 0) {
		buffer_printf(out, "one");
		transaction_advice_write_client(finding, with_names, out);
		buffer_printf(out, " for ");
		finding_write_time(out, finding->figures[IDLE_TIME]);
		buffer_printf(out, ", ");
	}
	buffer_printf(out,
		"so that a larger pool would be held as well. Have the application commit "
		"sooner; idle_transaction_timeout (now ");
	if (finding->figures[IDLE_LIMIT] > 0)
		finding_write_time(out, finding->figures[IDLE_LIMIT]);
	else
		buffer_printf(out, "0: none");
	buffer_printf(out, ") ends such transactions.");
}

static void write_session(const struct advice *finding, struct buffer *out)
{
	write_share(finding, IN_SESSION, out);
	buffer_printf(out,
		" of them are idle, and kept by clients that stay connected. With pool_mode = "
		"transaction others could use them meanwhile; or have the application disconnect "
		"when it is idle (client_idle_timeout).");
}

static void write_pinned(const struct advice *finding, struct buffer *out)
{
	write_share(finding, PINNED, out);
	buffer_printf(out,
		" of them are idle, and pinned to their clients, most often for: %s. SHOW PINS has "
		"the clients: have the application drop what it leaves in the session, or take the "
		"cause out of pin_causes.",
		pin_causes_name((session_topics)finding->figures[CAUSE]));
}

bool full_advice_write(const struct advice *finding, bool with_names, struct buffer *out)
{
	if (finding->cause != ADVICE_POOL_FULL)
		return false;
	write_waits(finding, out);
	if (finding->kind == ADVICE_POOL_FULL)
		write_full(finding, out);
	else if (finding->kind == ADVICE_POOL_BUSY)
		write_busy(finding, out);
	else if (finding->kind == ADVICE_POOL_HELD)
		write_held(finding, with_names, out);
	else if (finding->kind == ADVICE_POOL_SESSION)
		write_session(finding, out);
	else
		write_pinned(finding, out);
	return true;
}
