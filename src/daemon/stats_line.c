/* SPDX-License-Identifier: ISC */
#include "daemon/stats_line.h"

#include <stdio.h>

#include "daemon/systemd.h"

static void sum_pools(const struct registry *registry, struct stats *sum)
{
	const struct pool *pool;

	*sum = (struct stats){0};
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory)
		stats_add(sum, &pool->stats);
}

/*
 * Write the averages of the last period as this version of PgBouncer does; `us` is the unit for
 * microseconds.
 */
static void format_stats(const struct totals *average, enum compat_version version,
	const char *us, char *out, size_t size)
{
	char logins[64] = "";

	if (compat_counts_logins(version))
		snprintf(logins, sizeof(logins), " %llu client logins/s,",
			(unsigned long long)average->client_logins);
	snprintf(out, size,
		"stats: %llu xacts/s, %llu queries/s, %llu client parses/s, %llu server parses/s, "
		"%llu binds/s,%s in %llu B/s, out %llu B/s, xact %llu %s, query %llu %s, wait %llu %s",
		(unsigned long long)average->transactions, (unsigned long long)average->queries,
		(unsigned long long)average->client_parses,
		(unsigned long long)average->server_parses, (unsigned long long)average->binds,
		logins, (unsigned long long)average->received,
		(unsigned long long)average->sent,
		(unsigned long long)average->transaction_time, us,
		(unsigned long long)average->query_time, us,
		(unsigned long long)average->wait_time, us);
}

void stats_line_write(const struct registry *registry, usec_t now)
{
	const struct settings *settings = registry->process->settings;
	struct stats sum;
	struct totals average;
	char text[512];

	sum_pools(registry, &sum);
	average = stats_average(&sum.current, &sum.newer, now - registry->stats_newer_at);
	if (settings->log_stats) {
		format_stats(&average, settings->compat_version, "us", text, sizeof(text));
		log_write(LEVEL_LOG, "%s", text);
	}
	format_stats(&average, settings->compat_version, "μs", text, sizeof(text));
	systemd_status(text);
}
