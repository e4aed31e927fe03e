/* SPDX-License-Identifier: ISC */
#include "admin/page/state_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/advice/advice.h"
#include "admin/metrics/metric_sources.h"
#include "model/shared/all_hosts.h"
#include "model/shared/all_workers.h"
#include "model/statistics/slow_log.h"

enum { HOSTS_MOST = 200, SLOW_MOST = 8 };

void state_json_init(struct state_json *state, struct registry *registry)
{
	*state = (struct state_json){.registry = registry, .started = metric_process_start()};
}

/* --- the process -------------------------------------------------------------------------- */

static void write_known(struct json *json, const char *name, int64_t value)
{
	if (value == METRIC_UNKNOWN || value == METRIC_UNLIMITED)
		json_null(json, name);
	else
		json_integer(json, name, value);
}

/* The share of one processor since the last time, at first since the start of the process. */
static void write_cpu(struct state_json *state, int64_t cpu)
{
	const usec_t now = loop_now(state->registry->loop);
	const bool is_first = state->cpu_at == 0;
	const usec_t span = is_first ? clock_wall() - state->started : now - state->cpu_at;
	const int64_t used = is_first ? cpu : cpu - state->cpu;

	if (cpu == METRIC_UNKNOWN || span <= 0 || used < 0)
		json_null(&state->json, "cpu");
	else
		json_fraction(
			&state->json, "cpu", (int64_t)((double)used * 10000 / (double)span), 4);
	state->cpu = cpu;
	state->cpu_at = now;
}

static void write_certificate(
	struct json *json, const char *side, const struct tls_context *context)
{
	const long long end = context ? tls_context_not_after(context) : 0;

	if (end == 0)
		return;
	json_open_object(json, NULL);
	json_text(json, "side", side);
	json_integer(json, "seconds_left", end - clock_wall() / USEC_PER_SEC);
	json_close_object(json);
}

static void write_process(struct state_json *state)
{
	const struct registry *registry = state->registry;
	const struct process *process = registry->process;
	const struct process_figures figures = metric_figures_of_process();
	struct json *json = &state->json;

	json_open_object(json, "process");
	json_integer(json, "clients", (int64_t)process->limits.clients);
	json_integer(json, "max_clients", process->settings->max_client_conn);
	json_integer(json, "logins", (int64_t)all_workers_sum(process).logins);
	json_integer(json, "servers", (int64_t)state->pools.servers);
	write_cpu(state, figures.cpu);
	write_known(json, "memory_bytes", figures.resident);
	write_known(json, "fds", figures.open_descriptors);
	write_known(json, "max_fds", figures.most_descriptors);
	json_open_array(json, "certificates");
	write_certificate(json, "client", process->client_tls);
	write_certificate(json, "server", process->server_tls);
	/* The same file as that of clients, unless they have no TLS. */
	if (!process->client_tls)
		write_certificate(json, "metrics", process->metrics_tls);
	json_close_array(json);
	json_close_object(json);
}

static void write_errors(struct state_json *state)
{
	struct error_text *texts = malloc(REASON_COUNT * sizeof(*texts));
	struct json *json = &state->json;
	struct counters counters;
	unsigned count;

	json_open_array(json, "errors");
	counters_sum(state->registry->process, &counters);
	count = texts ? metric_error_texts(&counters, texts) : 0;
	for (unsigned i = 0; i < count; i++) {
		if (texts[i].count == 0)
			continue;
		json_open_object(json, NULL);
		json_text(json, "error", texts[i].text);
		json_integer(json, "count", (int64_t)texts[i].count);
		json_close_object(json);
	}
	json_close_array(json);
	free(texts);
}

static void write_totals(struct state_json *state)
{
	const struct pool_rates rates = state_pools_rates(&state->pools);
	struct json *json = &state->json;

	json_open_object(json, "totals");
	json_fraction(json, "transactions_per_second", rates.transactions, 3);
	json_fraction(json, "queries_per_second", rates.queries, 3);
	json_fraction(json, "received_per_second", rates.received, 3);
	json_fraction(json, "sent_per_second", rates.sent, 3);
	write_errors(state);
	json_close_object(json);
}

static void write_head(struct state_json *state)
{
	const struct process *process = state->registry->process;
	struct json *json = &state->json;
	char compat[32];

	snprintf(compat, sizeof(compat), "PgBouncer %s",
		compat_text(process->settings->compat_version));
	json_text(json, "version", "pgusher " PACKAGE_VERSION);
	json_text(json, "compat", compat);
	json_seconds(json, "now", clock_wall());
	json_seconds(json, "started", state->started);
	json_text(json, "state", metric_state_of(process));
	json_boolean(json, "details", state->details);
}

/* --- hosts -------------------------------------------------------------------------------- */

/* A primary that is not the newest one of its system is none any more. */
static const char *role_of(const struct host *host)
{
	return host->superseded ? "unknown" : host_role_name(host);
}

static void write_host(struct state_json *state, const struct host *known)
{
	const struct process *process = state->registry->process;
	union host_room room;
	const struct host *host = all_hosts_view(process, known, &room);
	const struct known_host_figures figures = metric_figures_of_host(host);
	char text[HOST_TEXT_SIZE], name[40];
	struct json *json = &state->json;

	snprintf(name, sizeof(name), "host %llu", (unsigned long long)host->number);
	json_open_object(json, NULL);
	json_integer(json, "id", (int64_t)host->number);
	json_text(json, "name", state->details ? host_text(host, text) : name);
	json_text(json, "role", role_of(host));
	json_boolean(json, "up", figures.up != 0);
	json_integer(json, "connections", figures.connections);
	if (figures.connect_time == METRIC_UNKNOWN)
		json_null(json, "connect_ms");
	else
		json_milliseconds(json, "connect_ms", figures.connect_time);
	write_known(json, "lag_bytes", figures.lag_bytes);
	if (figures.lag_time == METRIC_UNKNOWN)
		json_null(json, "lag_seconds");
	else
		json_seconds(json, "lag_seconds", figures.lag_time);
	json_close_object(json);
}

/* A name that has no address is no host. */
static void write_hosts(struct state_json *state)
{
	struct host_walk walk = {.process = state->registry->process};
	const struct host *host;
	unsigned count = 0;

	json_open_array(&state->json, "hosts");
	while ((host = host_walk_next(&walk)) != NULL) {
		if (host->is_name)
			continue;
		if (count++ == HOSTS_MOST)
			break;
		write_host(state, host);
	}
	json_close_array(&state->json);
}

/* --- advice ------------------------------------------------------------------------------- */

static void write_one_advice(struct state_json *state, const struct advice *advice)
{
	const struct registry *registry = state->registry;
	const struct pool *pool = advice_pool(registry, advice);
	struct buffer text = {0};
	struct json *json = &state->json;

	json_open_object(json, NULL);
	json_text(json, "code", advice_code(advice));
	json_text(json, "severity", advice_severity_name(advice_severity(advice)));
	if (pool)
		json_integer(json, "pool", (int64_t)pool->number);
	else
		json_null(json, "pool");
	json_text(json, "database", state->details ? advice_database(registry, advice) : NULL);
	json_text(json, "user", state->details ? advice_user(registry, advice) : NULL);
	json_integer(
		json, "seconds", advice_age(advice, loop_now(registry->loop)) / USEC_PER_SEC);
	advice_write(advice, state->details, &text);
	json_bytes(json, "text", (const char *)text.data, text.length);
	buffer_free(&text);
	json_text(json, "setting", advice_setting(advice));
	json_close_object(json);
}

static void write_advice(struct state_json *state)
{
	const struct advice *advice;

	json_open_array(&state->json, "advice");
	for (unsigned i = 0; (advice = advice_nth(state->registry, i)) != NULL; i++)
		write_one_advice(state, advice);
	json_close_array(&state->json);
}

/* --- slow queries ------------------------------------------------------------------------- */

/* Queries that are alike: the newest and the slowest of them. */
struct slow_group {
	const struct slow_query *newest, *slowest;
	unsigned count;
};

/* Of queries that waited in the queue, their texts do not matter: they waited for others. */
static bool are_alike(const struct slow_query *one, const struct slow_query *other)
{
	return one->pool == other->pool && one->cause == other->cause &&
		one->setting == other->setting &&
		strcmp(one->application, other->application) == 0 &&
		(one->cause == SLOW_QUEUE || strcmp(one->text, other->text) == 0);
}

/* Returns how many groups there are, at most SLOW_MOST; those of the newest queries come first. */
static unsigned group_slow(const struct process *process, struct slow_group groups[SLOW_MOST])
{
	const struct slow_query *query;
	struct slow_walk walk = {0};
	unsigned count = 0, found;

	while ((query = slow_walk_next(&walk, process)) != NULL) {
		for (found = 0; found < count; found++) {
			if (are_alike(query, groups[found].newest))
				break;
		}
		if (found == SLOW_MOST)
			continue;
		if (found == count)
			groups[count++] = (struct slow_group){query, query, 0};
		groups[found].count++;
		if (query->total > groups[found].slowest->total)
			groups[found].slowest = query;
	}
	return count;
}

static void write_slow_group(struct state_json *state, const struct slow_group *group)
{
	const struct slow_query *query = group->slowest;
	struct json *json = &state->json;

	json_open_object(json, NULL);
	json_seconds(json, "at", group->newest->at);
	json_integer(json, "count", group->count);
	json_integer(json, "pool", (int64_t)query->pool);
	json_text(json, "cause", slow_cause_labels[query->cause]);
	json_text(json, "setting", query->setting);
	json_milliseconds(json, "total_ms", query->total);
	json_milliseconds(json, "queue_ms", query->parts[SLOW_QUEUE]);
	json_milliseconds(json, "server_ms", query->parts[SLOW_SERVER]);
	json_milliseconds(json, "client_ms", query->parts[SLOW_CLIENT]);
	json_integer(json, "rows", (int64_t)query->rows);
	json_integer(json, "bytes", (int64_t)query->sent);
	json_text(json, "application",
		state->details && query->application[0] ? query->application : NULL);
	json_text(json, "text", state->details && query->text[0] ? query->text : NULL);
	json_close_object(json);
}

static void write_slow(struct state_json *state)
{
	struct slow_group groups[SLOW_MOST];
	const unsigned count = group_slow(state->registry->process, groups);

	json_open_array(&state->json, "slow");
	for (unsigned i = 0; i < count; i++)
		write_slow_group(state, &groups[i]);
	json_close_array(&state->json);
}

/* --- the document ------------------------------------------------------------------------- */

static bool begin(void *context, struct buffer *out)
{
	struct state_json *state = context;
	struct json *json = &state->json;

	*json = (struct json){.out = out};
	state->details = state->registry->process->settings->page_details;
	if (!state_pools_begin(&state->pools, state->registry)) {
		state_pools_end(&state->pools);
		return false;
	}
	json_open_object(json, NULL);
	write_head(state);
	write_process(state);
	write_totals(state);
	json_open_array(json, "pools");
	return true;
}

static bool write_more(void *context)
{
	struct state_json *state = context;
	struct json *json = &state->json;

	if (state_pools_write(&state->pools, json, state->details))
		return true;
	json_close_array(json);
	json_integer(json, "pools_total", (int64_t)state->pools.total);
	write_hosts(state);
	write_advice(state);
	write_slow(state);
	json_close_object(json);
	return false;
}

static void end(void *context)
{
	state_pools_end(&((struct state_json *)context)->pools);
}

struct document_writer state_json_writer(struct state_json *state)
{
	return (struct document_writer){begin, write_more, end, state};
}
