/* SPDX-License-Identifier: ISC */
/* SHOW HOSTS. */
#include <stdio.h>

#include "admin/show/topic.h"
#include "base/clock.h"
#include "model/host/hosts.h"

static const struct column columns[] = {
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
	return !host->gone && (!host->is_name || host->failed_since > 0);
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
	const struct host *host;

	TAILQ_FOREACH (host, &request->registry->process->hosts, in_hosts) {
		if (is_listed(host))
			add_host(result, host, now, wall);
	}
}

const struct topic show_hosts = TOPIC("HOSTS", columns, fill);
