/* SPDX-License-Identifier: ISC */
/* Metrics of the process as a whole. */
#include <ares.h>
#include <event2/event.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "admin/metrics/metric_sources.h"
#include "admin/metrics/metrics.h"
#include "model/shared/all_names.h"
#include "model/shared/all_users.h"
#include "model/shared/all_workers.h"
#include "net/tls_context.h"

static void add_number(struct metric_samples *samples, int64_t number)
{
	const struct metric_number figures = {number};

	metric_samples_add(samples, &figures);
}

/* --- lists -------------------------------------------------------------------------------- */

static struct list_figures lists_of(const struct registry *registry)
{
	const struct process *process = registry->process;
	const struct worker_sums sums = all_workers_sum(process);

	return (struct list_figures){
		.databases = registry_count_databases(registry),
		.users = all_users_count(process),
		.pools = registry_count_pools(registry),
		.free_clients = (int64_t)sums.clients.free,
		.used_clients = (int64_t)sums.clients.used,
		.login_clients = sums.logins,
		.free_servers = (int64_t)sums.servers.free,
		.used_servers = (int64_t)sums.servers.used,
		.dns_names = (int64_t)all_names_count(process),
		.dns_zones = (int64_t)all_zones_count(process),
		.dns_queries = (int64_t)all_names_in_flight(process),
	};
}

static void collect_lists(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const struct list_figures figures = lists_of(context->registry);

	(void)detail;
	metric_samples_add(samples, &figures);
}

const struct metric_source metric_lists = {collect_lists, sizeof(struct list_figures), NULL};

/* --- configuration and version ------------------------------------------------------------ */

static void collect_config(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const struct settings *settings = context->registry->process->settings;
	const struct config_figures figures = {
		.up = 1,
		.max_client_connections = settings->max_client_conn,
		.max_user_connections = settings->max_user_connections,
	};

	(void)detail;
	metric_samples_add(samples, &figures);
}

const struct metric_source metric_config = {
	collect_config, sizeof(struct config_figures), NULL};

static void collect_version(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	(void)detail;
	metric_samples_label(samples, "version", context->registry->process->version);
	add_number(samples, 1);
}

const struct metric_source metric_version = {
	collect_version, sizeof(struct metric_number), NULL};

static void collect_build(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	(void)detail;
	metric_samples_label(samples, "version", PACKAGE_VERSION);
	metric_samples_label(samples, "compat",
		compat_text(context->registry->process->settings->compat_version));
	metric_samples_label(samples, "libevent", event_get_version());
	metric_samples_label(samples, "openssl", OpenSSL_version(OPENSSL_VERSION_STRING));
	metric_samples_label(samples, "cares", ares_version(NULL));
	add_number(samples, 1);
}

const struct metric_source metric_build = {collect_build, sizeof(struct metric_number), NULL};

/* --- the process -------------------------------------------------------------------------- */

/* The first bytes of a file of /proc as text; empty when there is none. */
static void read_proc(const char *path, char *out, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t length = 0;

	if (file) {
		length = fread(out, 1, size - 1, file);
		fclose(file);
	}
	out[length] = '\0';
}

/* The size of the folder is the count since Linux 6.2; to list the folder would be slow. */
static int64_t open_descriptors(void)
{
	struct stat folder;

	if (stat("/proc/self/fd", &folder) != 0 || folder.st_size == 0)
		return METRIC_UNKNOWN;
	return folder.st_size;
}

/*
 * proc(5): field 22 is the start time in ticks since boot; field 2, a name, may contain blanks.
 */
usec_t metric_process_start(void)
{
	struct timespec up;
	unsigned long long ticks;
	char text[1024], *at;

	read_proc("/proc/self/stat", text, sizeof(text));
	at = strrchr(text, ')');
	if (!at || clock_gettime(CLOCK_BOOTTIME, &up) != 0 ||
		sscanf(at + 1,
			" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			"%*d %llu",
			&ticks) != 1)
		return clock_wall();
	return clock_wall() - (up.tv_sec * USEC_PER_SEC + up.tv_nsec / 1000) +
		(usec_t)ticks * USEC_PER_SEC / sysconf(_SC_CLK_TCK);
}

static int64_t limit_of(int resource)
{
	struct rlimit limit;

	if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
		return METRIC_UNKNOWN;
	return limit.rlim_cur == RLIM_INFINITY ? METRIC_UNLIMITED : (int64_t)limit.rlim_cur;
}

static int64_t time_of(const struct timeval *time)
{
	return (int64_t)time->tv_sec * USEC_PER_SEC + time->tv_usec;
}

struct process_figures metric_figures_of_process(void)
{
	const long page_size = sysconf(_SC_PAGESIZE);
	struct process_figures figures = {
		.open_descriptors = open_descriptors(),
		.most_descriptors = limit_of(RLIMIT_NOFILE),
		.virtual_most = limit_of(RLIMIT_AS),
		.resident = METRIC_UNKNOWN,
		.virtual = METRIC_UNKNOWN,
		.cpu = METRIC_UNKNOWN,
	};
	struct rusage usage;
	long pages, resident;
	char text[128];

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		figures.cpu = time_of(&usage.ru_utime) + time_of(&usage.ru_stime);
	read_proc("/proc/self/statm", text, sizeof(text));
	if (sscanf(text, "%ld %ld", &pages, &resident) == 2) {
		figures.virtual = pages * page_size;
		figures.resident = resident * page_size;
	}
	return figures;
}

static void collect_process(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	struct process_figures figures = metric_figures_of_process();

	(void)detail;
	figures.started = context->metrics->started;
	metric_samples_add(samples, &figures);
}

const struct metric_source metric_process = {
	collect_process, sizeof(struct process_figures), NULL};

/* --- state -------------------------------------------------------------------------------- */

static const char *const states[] = {"active", "paused", "suspended", "shutdown"};

const char *metric_state_of(const struct process *process)
{
	static const char *const operations[] = {
		[OPERATION_RUNNING] = "active",
		[OPERATION_PAUSED] = "paused",
		[OPERATION_SUSPENDED] = "suspended",
	};

	return process->shutdown != SHUTDOWN_NONE ? "shutdown" : operations[process->operation];
}

static void collect_state(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const char *state = metric_state_of(context->registry->process);

	(void)detail;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		metric_samples_label(samples, "state", states[i]);
		add_number(samples, strcmp(states[i], state) == 0);
	}
}

const struct metric_source metric_state = {collect_state, sizeof(struct metric_number), NULL};

/* --- memory ------------------------------------------------------------------------------- */

static int64_t size_of(const struct slab *slab)
{
	return (int64_t)((slab->used + slab->free) * slab->object_size);
}

static void add_memory(struct metric_samples *samples, const char *kind, int64_t bytes)
{
	metric_samples_label(samples, "kind", kind);
	add_number(samples, bytes);
}

static void collect_memory(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const struct worker_sums sums = all_workers_sum(context->registry->process);

	(void)detail;
	add_memory(samples, "clients", size_of(&sums.clients));
	add_memory(samples, "servers", size_of(&sums.servers));
	add_memory(samples, "buffers", size_of(&sums.helds) + size_of(&sums.backlogs));
	add_memory(samples, "prepared", (int64_t)sums.statement_bytes);
}

const struct metric_source metric_memory = {collect_memory, sizeof(struct metric_number), NULL};

/* --- certificates ------------------------------------------------------------------------- */

static void add_certificate(struct metric_samples *samples, const char *side, const char *file,
	const struct tls_context *context)
{
	const long long end = context ? tls_context_not_after(context) : 0;

	if (end == 0)
		return;
	metric_samples_label(samples, "side", side);
	metric_samples_label(samples, "file", file);
	add_number(samples, end);
}

static void collect_certificates(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const struct registry *registry = context->registry;

	(void)detail;
	add_certificate(samples, "client", registry->process->settings->client_tls_cert_file,
		registry->process->client_tls);
	add_certificate(samples, "server", registry->process->settings->server_tls_cert_file,
		registry->process->server_tls);
	/* The same file as that of clients, unless they have no TLS. */
	if (!registry->process->client_tls)
		add_certificate(samples, "metrics",
			registry->process->settings->client_tls_cert_file,
			registry->process->metrics_tls);
}

const struct metric_source metric_certificates = {
	collect_certificates, sizeof(struct metric_number), NULL};

/* --- clients and their limits ------------------------------------------------------------- */

static void add_limit(struct metric_samples *samples, const char *scope, const char *name,
	int64_t limit, int64_t current)
{
	const struct limit_figures figures = {limit, current};

	metric_samples_label(samples, "scope", scope);
	metric_samples_label(samples, "name", name);
	metric_samples_add(samples, &figures);
}

static void collect_client_limits(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	const struct registry *registry = context->registry;
	const struct settings *settings = registry->process->settings;
	const struct database *database, *next_database;
	struct user_walk users = user_walk_begin(registry->process);
	const struct user *user;

	(void)detail;
	add_limit(samples, "global", "", settings->max_client_conn,
		registry->process->limits.clients);
	HASH_ITER (by_name, registry->process->directory.databases, database, next_database)
		add_limit(samples, "database", database->name,
			database_max_clients(database, settings), database->clients);
	while ((user = user_walk_next(&users)) != NULL)
		add_limit(samples, "user", user->name, user_max_clients(user, settings),
			user_clients(user));
}

const struct metric_source metric_client_limits = {
	collect_client_limits, sizeof(struct limit_figures), NULL};

/* --- the endpoint itself ------------------------------------------------------------------ */

static void collect_http(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	(void)detail;
	for (unsigned path = 0; path < PROBES_PATHS; path++) {
		for (unsigned code = 0; code < PROBES_CODES; code++) {
			char number[16];

			if (context->metrics->requests[path][code] == 0)
				continue;
			snprintf(number, sizeof(number), "%d", probes_codes[code]);
			metric_samples_label(samples, "path", probes_paths[path]);
			metric_samples_label(samples, "code", number);
			add_number(samples, (int64_t)context->metrics->requests[path][code]);
		}
	}
}

const struct metric_source metric_http = {collect_http, sizeof(struct metric_number), NULL};

static void collect_dropped(struct metric_samples *samples,
	const struct metric_context *context, const void *detail)
{
	(void)detail;
	add_number(samples, (int64_t)context->series_dropped);
}

const struct metric_source metric_dropped = {
	collect_dropped, sizeof(struct metric_number), NULL};
