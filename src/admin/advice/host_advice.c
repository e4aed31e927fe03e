/* SPDX-License-Identifier: ISC */
/* Advice about hosts: those that are down, and standbys that lag. */
#include <stdlib.h>

#include "admin/advice/rules.h"
#include "model/host/host_items.h"
#include "model/shared/all_hosts.h"

enum { FAILURES, DOWN_TIME, NEXT_TRY };

enum { BEHIND, REPLAY_AGE, LIMIT_BYTES, LIMIT_TIME };

#define MEGABYTE (1024LL * 1024)

/* What a host told longer ago is not current: as session/server/host_fit. */
#define LAG_LIFE (60 * USEC_PER_SEC)

/* A finding is about the host of the first registry that has it; what is known of it is `host`. */
static struct advice *note(
	struct advisor *advisor, enum advice_kind kind, const struct host *host)
{
	struct advice *finding = findings_note(
		&advisor->findings, kind, &(struct finding_subject){.other = host});
	char name[HOST_TEXT_SIZE];

	if (finding)
		finding_set_name(finding, host_text(host, name));
	return finding;
}

/* --- hosts that are down ------------------------------------------------------------------ */

static void look_at_failures(
	struct advisor *advisor, const struct host *known, const struct host *host)
{
	const usec_t now = advisor->findings.now;
	struct advice *finding;

	if (host->failed_since == 0)
		return;
	finding = note(advisor, ADVICE_HOST_DOWN, known);
	if (!finding)
		return;
	finding->figures[FAILURES] = host->failures;
	finding->figures[DOWN_TIME] = now - host->failed_since;
	finding->figures[NEXT_TRY] = host->next_try > now ? host->next_try - now : 0;
}

static void write_host(const struct advice *finding, bool with_names, struct buffer *out)
{
	if (with_names)
		buffer_printf(out, "Host %s", finding->name);
	else
		buffer_printf(out, "A host");
	buffer_printf(out, " has not answered for ");
	finding_write_time(out, finding->figures[DOWN_TIME]);
	buffer_printf(out, ", %lld attempts have failed, the next one is ",
		(long long)finding->figures[FAILURES]);
	if (finding->figures[NEXT_TRY] > 0) {
		buffer_printf(out, "in ");
		finding_write_time(out, finding->figures[NEXT_TRY]);
	} else {
		buffer_printf(out, "due");
	}
	buffer_printf(out,
		" (SHOW HOSTS has the error). Start PostgreSQL there, or correct or "
		"remove it in host= of [databases].");
}

/* --- standbys that lag -------------------------------------------------------------------- */

static bool is_known(const struct advisor *advisor, const struct host *host)
{
	return host->role == HOST_ROLE_STANDBY && host->progress.known &&
		advisor->findings.now - host->progress.told_at <= LAG_LIFE;
}

static struct advice *note_lag(
	struct advisor *advisor, const struct host *known, const struct host *host)
{
	struct advice *finding = note(advisor, ADVICE_STANDBY_LAG, known);

	if (!finding)
		return NULL;
	if (finding->notes == 1)
		finding->figures[LIMIT_BYTES] = finding->figures[LIMIT_TIME] = 0;
	finding->figures[BEHIND] = (int64_t)host->progress.behind;
	finding->figures[REPLAY_AGE] = host->progress.replay_age;
	return finding;
}

static void look_at_unlimited_lag(
	struct advisor *advisor, const struct host *known, const struct host *host)
{
	if (is_known(advisor, host) &&
		host->progress.behind >
			(uint64_t)(findings_least(ADVICE_STANDBY_LAG) * MEGABYTE))
		note_lag(advisor, known, host);
}

/* max_standby_lag: above 0 bytes, below 0 microseconds. */
static bool exceeds(const struct host *host, standby_lag most)
{
	if (most > 0)
		return host->progress.behind > (uint64_t)most;
	return host->progress.behind > 0 && host->progress.replay_age > -most;
}

void host_advice_look_at_lag(struct advisor *advisor, struct pool *pool)
{
	const struct registry *registry = pool->registry;
	const struct process *process = registry->process;
	const standby_lag most = database_max_standby_lag(pool->database, process->settings);
	struct host *own = NULL;
	struct advice *finding;
	unsigned n = 0;

	if (most == 0)
		return;
	while ((own = host_items_next(registry, pool->database->config, &n, own)) != NULL) {
		const struct host *known = all_hosts_first(process, own);
		union host_room room;
		const struct host *host = all_hosts_view(process, known, &room);

		if (!is_known(advisor, host) || !exceeds(host, most))
			continue;
		finding = note_lag(advisor, known, host);
		if (finding)
			finding->figures[most > 0 ? LIMIT_BYTES : LIMIT_TIME] =
				most > 0 ? most : -most;
	}
}

static void write_bytes(struct buffer *out, int64_t bytes)
{
	if (bytes < 10 * 1024)
		buffer_printf(out, "%lld bytes", (long long)bytes);
	else if (bytes < 10 * MEGABYTE)
		buffer_printf(out, "%lld kB", (long long)(bytes / 1024));
	else
		buffer_printf(out, "%lld MB", (long long)(bytes / MEGABYTE));
}

static void write_lag(const struct advice *finding, bool with_names, struct buffer *out)
{
	if (with_names)
		buffer_printf(out, "Standby %s is ", finding->name);
	else
		buffer_printf(out, "A standby is ");
	write_bytes(out, finding->figures[BEHIND]);
	buffer_printf(out, " behind, and its last replayed transaction is ");
	finding_write_time(out, finding->figures[REPLAY_AGE]);
	buffer_printf(out, " old");
	if (finding->figures[LIMIT_BYTES] == 0 && finding->figures[LIMIT_TIME] == 0) {
		buffer_printf(out,
			". Clients that read there see old rows: set max_standby_lag, and "
			"check its replication.");
		return;
	}
	buffer_printf(out, ", more than max_standby_lag (");
	if (finding->figures[LIMIT_BYTES] > 0)
		write_bytes(out, finding->figures[LIMIT_BYTES]);
	else
		finding_write_time(out, finding->figures[LIMIT_TIME]);
	buffer_printf(out,
		"): it gets no clients until it has caught up. Check its replication, or "
		"raise max_standby_lag.");
}

/* --- all ---------------------------------------------------------------------------------- */

void host_advice_look(struct advisor *advisor, const struct host *known)
{
	union host_room room;
	const struct host *host = all_hosts_view(advisor->registry->process, known, &room);

	look_at_failures(advisor, known, host);
	look_at_unlimited_lag(advisor, known, host);
}

bool host_advice_write(const struct advice *finding, bool with_names, struct buffer *out)
{
	if (finding->kind == ADVICE_HOST_DOWN)
		write_host(finding, with_names, out);
	else if (finding->kind == ADVICE_STANDBY_LAG)
		write_lag(finding, with_names, out);
	else
		return false;
	return true;
}
