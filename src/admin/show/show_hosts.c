/* SPDX-License-Identifier: ISC */
/* SHOW HOSTS, and SIZING: the pools with pool_size = auto, which follows from their hosts. */
#include <stdio.h>

#include "admin/show/show_stream.h"
#include "base/clock.h"
#include "model/shared/all_hosts.h"

/* --- HOSTS -------------------------------------------------------------------------------- */

static const struct column host_columns[] = {
	{"host", COLUMN_TEXT},
	{"address", COLUMN_TEXT},
	{"port", COLUMN_INT4},
	{"role", COLUMN_TEXT},
	{"told_by", COLUMN_TEXT},
	{"role_since", COLUMN_TIME},
	{"read_only", COLUMN_INT4},
	{"superseded", COLUMN_INT4},
	{"state", COLUMN_TEXT},
	{"down_since", COLUMN_TIME},
	{"failures", COLUMN_INT4},
	{"last_error", COLUMN_TEXT},
	{"next_try_ms", COLUMN_INT8},
	{"connections", COLUMN_INT4},
	{"watched", COLUMN_INT4},
	{"lag_bytes", COLUMN_INT8},
	{"lag_ms", COLUMN_INT8},
	{"connect_time_us", COLUMN_INT8},
	{"timeline", COLUMN_INT8},
	{"system_identifier", COLUMN_TEXT},
};

static const char *state_of(const struct host *host)
{
	if (host->failed_since > 0)
		return "down";
	return host->connect_time > 0 || host->servers > 0 ? "up" : "unknown";
}

static int64_t milliseconds_until(const struct host *host, usec_t now)
{
	return host->failed_since > 0 && host->next_try > now ? (host->next_try - now) / 1000
							      : 0;
}

/* A name is listed for itself only while it has no address. */
static bool is_listed(const struct host *host)
{
	return !host->is_name || host->failed_since > 0;
}

static void add_time(struct result *result, usec_t wall, usec_t moment)
{
	if (moment > 0)
		result_time(result, wall + moment);
	else
		result_text(result, NULL);
}

static void add_lag(struct result *result, const struct host *host)
{
	const struct host_progress *progress = &host->progress;

	if (host->role != HOST_ROLE_STANDBY || !progress->known) {
		result_text(result, NULL);
		result_text(result, NULL);
		return;
	}
	result_number(result, (int64_t)progress->behind);
	result_number(result, progress->behind > 0 ? progress->replay_age / 1000 : 0);
}

static void add_system(struct result *result, const struct host *host)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)host->system);
	result_text(result, host->system > 0 ? text : NULL);
}

static void add_host(struct result *result, const struct host *host, usec_t now, usec_t wall)
{
	char address[ADDRESS_TEXT_SIZE];

	result_begin_row(result);
	result_text(result, host->name);
	result_text(result,
		host->address.family == AF_UNSPEC ? NULL
						  : address_host(&host->address, address));
	result_number(result, host->port);
	result_text(result, host_role_name(host));
	result_text(result, host->role == HOST_ROLE_UNKNOWN ? NULL : host_teller_name(host));
	add_time(result, wall, host->role_since);
	result_number(result, host->read_only);
	result_number(result, host->superseded);
	result_text(result, state_of(host));
	add_time(result, wall, host->failed_since);
	result_number(result, host->failures);
	result_text(result, host->error[0] ? host->error : NULL);
	result_number(result, milliseconds_until(host, now));
	result_number(result, host->servers);
	result_number(result, host->watch != NULL);
	add_lag(result, host);
	result_number(result, host->connect_time);
	result_number(result, host->timeline);
	add_system(result, host);
	result_end_row(result);
}

static void fill(struct result *result, const struct show_request *request)
{
	const usec_t now = loop_now(request->registry->loop);
	const usec_t wall =
		clock_wall() - clock_monotonic() + request->registry->process->clock.stopped;
	const struct process *process = request->registry->process;
	struct host_walk walk = {.process = process};
	const struct host *known;

	while ((known = host_walk_next(&walk)) != NULL) {
		union host_room room;
		const struct host *host = all_hosts_view(process, known, &room);

		if (is_listed(host))
			add_host(result, host, now, wall);
	}
}

const struct topic show_hosts = TOPIC("HOSTS", host_columns, fill);

/* --- SIZING ------------------------------------------------------------------------------- */

static const struct column sizing_columns[] = {
	{"database", COLUMN_TEXT},
	{"user", COLUMN_TEXT},
	{"pool_size", COLUMN_INT4},
	{"servers", COLUMN_INT4},
	{"host", COLUMN_TEXT},
	{"cores", COLUMN_INT4},
	{"cores_from", COLUMN_TEXT},
	{"max_connections", COLUMN_INT4},
	{"reserved", COLUMN_INT4},
	{"other_pools", COLUMN_INT4},
	{"sharing_pools", COLUMN_INT4},
	{"processes", COLUMN_INT4},
	{"decided_by", COLUMN_TEXT},
	{"why", COLUMN_TEXT},
};

static void add_unless_zero(struct result *result, unsigned number)
{
	if (number > 0)
		result_number(result, number);
	else
		result_text(result, NULL);
}

static void add_nothing(struct result *result, const struct pool *pool)
{
	/* host to decided_by */
	for (int i = 0; i < 9; i++)
		result_text(result, NULL);
	result_text(result,
		pool->auto_size > 0 ? "as in the process before: no server has been asked yet"
				    : "not known yet: no server has logged in");
}

static void add_facts(struct result *result, const struct pool_sizing *own)
{
	const struct sizing_facts *facts = &own->facts;
	const bool tells = facts->max_connections > 0;
	struct buffer why = {0};

	result_text(result, own->host);
	add_unless_zero(result, facts->cores);
	result_text(result, cores_source_name(facts->cores_from));
	add_unless_zero(result, facts->max_connections);
	if (tells)
		result_number(result, facts->reserved);
	else
		result_text(result, NULL);
	result_number(result, facts->fixed);
	result_number(result, facts->pools);
	result_number(result, facts->processes);
	result_text(result, sizing_bound_name(own->sizing.bound));
	sizing_explain(&own->sizing, facts, &why);
	buffer_append(&why, "", 1);
	result_text(result, why.failed ? NULL : (const char *)why.data);
	buffer_free(&why);
}

static void add_sizing(struct show_stream *show, void *object, unsigned kind)
{
	const struct pool *pool = object;
	struct result *result = &show->result;

	(void)kind;
	if (!pool->sizing)
		return;
	result_begin_row(result);
	result_text(result, pool->label);
	result_text(result, pool->user->name);
	result_number(result, pool_size(pool));
	result_number(result, pool_servers(pool));
	if (pool->sizing->sizing.size > 0)
		add_facts(result, pool->sizing);
	else
		add_nothing(result, pool);
	result_end_row(result);
}

static void list_sized(struct show_stream *show)
{
	struct pool *pool;

	registry_sort(show->registry);
	TAILQ_FOREACH (pool, &show->registry->process->directory.pools, in_directory) {
		if (pool->sizing)
			show_stream_add_object(show, &pool->handle, pool, 0);
	}
}

static const struct topic_walk sizing = {.list = list_sized, .add_rows = add_sizing};

const struct topic show_sizing = WALKED_TOPIC("SIZING", sizing_columns, &sizing);
