/* SPDX-License-Identifier: ISC */
/* Advice about the process: its limits of clients and descriptors, its certificates, its log, its cores. */
#include <limits.h>
#include <stdlib.h>

#include "admin/advice/rules.h"
#include "base/log.h"
#include "net/tls_context.h"

enum { PERCENT = 100 };

static struct advice *note(struct advisor *advisor, enum advice_kind kind)
{
	return findings_note(&advisor->findings, kind, &(struct finding_subject){0});
}

static const struct settings *settings_of(const struct advisor *advisor)
{
	return advisor->registry->process->settings;
}

/* --- clients ------------------------------------------------------------------------------ */

enum { CLIENTS, CLIENTS_MOST };

static void look_at_clients(struct advisor *advisor)
{
	const int64_t clients = advisor->registry->process->limits.clients;
	const int64_t most = settings_of(advisor)->max_client_conn;
	struct advice *finding;

	if (most <= 0 || clients * PERCENT < most * findings_least(ADVICE_CLIENT_LIMIT))
		return;
	finding = note(advisor, ADVICE_CLIENT_LIMIT);
	if (!finding)
		return;
	finding->figures[CLIENTS] = clients;
	finding->figures[CLIENTS_MOST] = most;
	if (clients >= most)
		finding->severity = ADVICE_CRITICAL;
}

static void write_clients(const struct advice *finding, struct buffer *out)
{
	const long long clients = finding->figures[CLIENTS];
	const long long most = finding->figures[CLIENTS_MOST];

	buffer_printf(out, "%lld of %lld clients are connected", clients, most);
	buffer_printf(out,
		clients >= most ? ": new ones are refused. "
				: ", and new ones are refused when all are. ");
	buffer_printf(out,
		"Raise max_client_conn, to %lld for example, or have clients that need no "
		"connection close it (client_idle_timeout).",
		most * 2);
}

/* --- clients that were refused ------------------------------------------------------------ */

/* Limits that refuse clients, and the settings that they are. */
static const struct {
	enum client_rejection why;
	const char *setting;
} refusals[] = {
	{CLIENT_REJECTED_MAX_CLIENT_CONN, "max_client_conn"},
	{CLIENT_REJECTED_ADDRESS_LIMIT, "max_client_conn_per_address"},
	{CLIENT_REJECTED_DB_LIMIT, "max_db_client_connections"},
	{CLIENT_REJECTED_USER_LIMIT, "max_user_client_connections"},
};

enum { REFUSALS = sizeof(refusals) / sizeof(refusals[0]) };

enum { REFUSED, REFUSED_TIME };

static void look_at_refusals(struct advisor *advisor)
{
	struct counters counters;
	const uint64_t *counts = counters.client_rejected;
	uint64_t most = 0;
	unsigned row = 0;
	struct advice *finding;

	counters_sum(advisor->registry->process, &counters);
	for (unsigned i = 0; i < REFUSALS; i++) {
		const enum client_rejection why = refusals[i].why;
		const uint64_t growth =
			measures_growth(advisor, &advisor->meters.rejected[why], counts[why]);

		if (growth > most) {
			most = growth;
			row = i;
		}
	}
	if (most < (uint64_t)findings_least(ADVICE_CLIENTS_REFUSED))
		return;
	finding = note(advisor, ADVICE_CLIENTS_REFUSED);
	if (!finding)
		return;
	finding->setting = refusals[row].setting;
	finding->figures[REFUSED] = (int64_t)most;
	finding->figures[REFUSED_TIME] = measures_window(advisor);
}

static void write_refusals(const struct advice *finding, struct buffer *out)
{
	buffer_printf(out, "%lld logins in the last ", (long long)finding->figures[REFUSED]);
	finding_write_time(out, finding->figures[REFUSED_TIME]);
	buffer_printf(out,
		" were refused by %s. Raise it, or have the application use fewer connections.",
		finding->setting);
}

static void look_at_auth_failures(struct advisor *advisor)
{
	struct counters counters;
	struct advice *finding;
	uint64_t sum = 0, growth;

	counters_sum(advisor->registry->process, &counters);
	for (unsigned i = 0; i < AUTH_FAILURES; i++)
		sum += counters.auth_failed[i];
	growth = measures_growth(advisor, &advisor->meters.auth_failures, sum);
	if (growth < (uint64_t)findings_least(ADVICE_AUTH_FAILURES))
		return;
	finding = note(advisor, ADVICE_AUTH_FAILURES);
	if (!finding)
		return;
	finding->figures[REFUSED] = (int64_t)growth;
	finding->figures[REFUSED_TIME] = measures_window(advisor);
}

static void write_auth_failures(const struct advice *finding, struct buffer *out)
{
	buffer_printf(out, "%lld logins of clients in the last ",
		(long long)finding->figures[REFUSED]);
	finding_write_time(out, finding->figures[REFUSED_TIME]);
	buffer_printf(out,
		" failed to authenticate. The log has their addresses and users: correct the "
		"password of an application, or slow down guesses by auth_failure_delay.");
}

/* --- descriptors -------------------------------------------------------------------------- */

enum { FILES, FILES_CLIENTS, FILES_WANTED, FILES_SERVERS };

static void look_at_descriptors(struct advisor *advisor)
{
	const struct process *process = advisor->registry->process;
	const int64_t most = descriptors_clients_most(process);
	const int64_t wanted = process->settings->max_client_conn;
	struct advice *finding;

	if (process->descriptors.limit == 0 || wanted <= most)
		return;
	finding = note(advisor, ADVICE_DESCRIPTOR_LIMIT);
	if (!finding)
		return;
	finding->figures[FILES] = process->descriptors.limit;
	finding->figures[FILES_CLIENTS] = most;
	finding->figures[FILES_WANTED] = wanted;
	finding->figures[FILES_SERVERS] = process->descriptors.kept;
}

static void write_descriptors(const struct advice *finding, struct buffer *out)
{
	const long long files = finding->figures[FILES];
	const long long clients = finding->figures[FILES_CLIENTS];
	const long long wanted = finding->figures[FILES_WANTED];

	buffer_printf(out,
		"max_client_conn is %lld, but with the limit of %lld open files, of which %lld are "
		"kept for servers, only %lld clients can be connected. Raise the limit (LimitNOFILE "
		"of the service, ulimit -n) to at least %lld, or lower max_client_conn to %lld.",
		wanted, files, (long long)finding->figures[FILES_SERVERS], clients,
		files + wanted - clients, clients);
}

/* --- certificates ------------------------------------------------------------------------- */

enum { SIDE, SECONDS_LEFT };

#define DAY 86400LL

static void look_at_certificate(struct advisor *advisor, const struct tls_context *context,
	const char *setting, const char *file)
{
	const long long end = context ? tls_context_not_after(context) : 0;
	const long long left = end - clock_wall() / USEC_PER_SEC;
	const bool is_client = context != advisor->registry->process->server_tls;
	struct advice *finding;

	if (end == 0 || left > findings_least(ADVICE_CERTIFICATE_ENDS) * DAY)
		return;
	finding = findings_note(&advisor->findings, ADVICE_CERTIFICATE_ENDS,
		&(struct finding_subject){.other = setting});
	if (!finding)
		return;
	finding->setting = setting;
	finding->figures[SIDE] = is_client;
	finding->figures[SECONDS_LEFT] = left;
	finding_set_name(finding, file);
	if (left < 3 * DAY)
		finding->severity = ADVICE_CRITICAL;
}

static void look_at_certificates(struct advisor *advisor)
{
	const struct process *process = advisor->registry->process;
	const struct settings *settings = process->settings;

	/* The endpoint of metrics has the same file as clients, which may have no TLS. */
	look_at_certificate(advisor,
		process->client_tls ? process->client_tls : process->metrics_tls,
		"client_tls_cert_file", settings->client_tls_cert_file);
	look_at_certificate(advisor, process->server_tls, "server_tls_cert_file",
		settings->server_tls_cert_file);
}

static void write_certificate(const struct advice *finding, bool with_names, struct buffer *out)
{
	const long long left = finding->figures[SECONDS_LEFT];
	const char *side = finding->figures[SIDE] ? "clients" : "servers";

	buffer_printf(out, "The certificate towards %s", side);
	if (with_names && finding->name[0])
		buffer_printf(out, " (%s)", finding->name);
	if (left >= 2 * DAY)
		buffer_printf(out, " ends in %lld days", left / DAY);
	else if (left >= 0)
		buffer_printf(out, " ends in %lld hours", left / 3600);
	else
		buffer_printf(out, " ended %lld hours ago", -left / 3600);
	buffer_printf(out, ": replace the file of %s, and RELOAD.", finding->setting);
}

/* --- the cores that the workers run on ---------------------------------------------------- */

/*
 * Of the busiest worker. Its part of the queries: of the database with the most, in percent. MORE: how
 * many workers to have; 0: as many as now.
 */
enum { BUSY, WORKER, WORKERS, QUERIES_PERCENT, DATABASES, MORE };

/* From this part of the queries on a database is what the worker is busy with. */
enum { MOST_QUERIES = 80 };

static unsigned busiest(const struct advisor *advisor)
{
	const unsigned workers = advisor->registry->process->workers;
	unsigned found = 0;

	for (unsigned i = 1; i < workers; i++) {
		if (advisor->busy_percent[i] > advisor->busy_percent[found])
			found = i;
	}
	return found;
}

/* Queries since the period of the statistics began. */
static uint64_t queries_of(const struct database *database)
{
	const struct pool *pool;
	uint64_t queries = 0;

	TAILQ_FOREACH (pool, &database->pools, in_database)
		queries += pool->stats.current.queries - pool->stats.newer.queries;
	return queries;
}

/* Name the database with the most queries of the worker. */
static void name_largest(struct advice *finding, const struct registry *registry)
{
	const struct database *database, *largest = NULL;
	uint64_t all = 0, most = 0;

	TAILQ_FOREACH (database, &registry->databases, in_registry) {
		const uint64_t queries = queries_of(database);

		all += queries;
		if (queries <= most)
			continue;
		most = queries;
		largest = database;
	}
	finding->figures[QUERIES_PERCENT] = all > 0 ? (int64_t)(most * PERCENT / all) : 0;
	finding_set_name(finding, largest ? largest->name : NULL);
}

/* Twice as many workers, if there are processors for them; 0: no more than now. */
static unsigned more_workers(struct advisor *advisor)
{
	const unsigned workers = advisor->registry->process->workers;
	const unsigned cores = measures_own_cores(advisor);
	unsigned more = workers * 2;

	more = more > WORKERS_MOST ? WORKERS_MOST : more;
	more = more > cores ? cores : more;
	return more > workers ? more : 0;
}

static void look_at_cores(struct advisor *advisor)
{
	const struct process *process = advisor->registry->process;
	const unsigned worker = busiest(advisor);
	const int percent = advisor->busy_percent[worker];
	struct advice *finding;

	if (advisor->looked_at == 0 || percent < findings_least(ADVICE_PROCESS_BUSY))
		return;
	finding = note(advisor, ADVICE_PROCESS_BUSY);
	if (!finding)
		return;
	finding_average(finding, BUSY, percent);
	finding->figures[WORKER] = worker;
	finding->figures[WORKERS] = process->workers;
	finding->figures[DATABASES] = process->registries[worker]->database_count;
	finding->figures[MORE] = more_workers(advisor);
	name_largest(finding, process->registries[worker]);
}

/* divide: that word, as the sentence needs it. */
static void write_largest(
	const struct advice *finding, bool with_names, const char *divide, struct buffer *out)
{
	buffer_printf(out, "%s the clients of ", divide);
	if (with_names)
		buffer_printf(out, "database %s", finding->name);
	else
		buffer_printf(out, "one database");
	buffer_printf(out,
		", with %lld %% of the queries, among several entries of [databases] with the same "
		"dbname: a database is served by one worker",
		(long long)finding->figures[QUERIES_PERCENT]);
}

/* What to do within this process; returns whether that is anything. */
static bool write_remedy(const struct advice *finding, bool with_names, struct buffer *out)
{
	const long long workers = finding->figures[WORKERS], more = finding->figures[MORE];
	const bool is_largest = finding->figures[QUERIES_PERCENT] >= MOST_QUERIES;

	if (workers > 1 && is_largest) {
		write_largest(finding, with_names, "Divide", out);
		return true;
	}
	if (more > 0)
		buffer_printf(
			out, "Raise workers from %lld to %lld, for example", workers, more);
	if (more > 0 && is_largest)
		write_largest(finding, with_names, ", and divide", out);
	if (workers > 1 && finding->figures[DATABASES] > 1)
		buffer_printf(out, "%s one of its databases another worker (worker)",
			more > 0 ? ", or give" : "Give");
	return more > 0 || (workers > 1 && finding->figures[DATABASES] > 1);
}

static void write_cores(const struct advice *finding, bool with_names, struct buffer *out)
{
	const long long workers = finding->figures[WORKERS];
	bool has_remedy;

	if (workers > 1)
		buffer_printf(out, "Worker %lld of %lld uses ",
			(long long)finding->figures[WORKER], workers);
	else
		buffer_printf(out, "pgusher itself uses ");
	finding_write_average(out, finding->figures[BUSY]);
	buffer_printf(out,
		" %% of a processor core, and %s: clients wait for it, not for PostgreSQL. ",
		workers > 1 ? "a worker has one thread for all its databases"
			    : "it has one thread for all connections");
	has_remedy = write_remedy(finding, with_names, out);
	buffer_printf(out, "%s several processes on the same port (so_reuseport, [peers]).",
		has_remedy ? ", or run" : "Run");
}

/* --- the log ------------------------------------------------------------------------------ */

enum { LINES, LINES_TIME };

static void look_at_log(struct advisor *advisor)
{
	const uint64_t lost = measures_growth(advisor, &advisor->meters.log_lost, log_lost());
	struct advice *finding;

	if (lost < (uint64_t)findings_least(ADVICE_LOG_LOST))
		return;
	finding = note(advisor, ADVICE_LOG_LOST);
	if (!finding)
		return;
	finding->figures[LINES] = (int64_t)lost;
	finding->figures[LINES_TIME] = measures_window(advisor);
	finding->setting = settings_of(advisor)->syslog ? "syslog" : "logfile";
}

static void write_log(const struct advice *finding, struct buffer *out)
{
	buffer_printf(out, "%lld log lines were lost in the last ",
		(long long)finding->figures[LINES]);
	finding_write_time(out, finding->figures[LINES_TIME]);
	buffer_printf(out,
		": the target of %s does not take them. Check its disk or its daemon.",
		finding->setting);
}

/* --- all ---------------------------------------------------------------------------------- */

void process_advice_look(struct advisor *advisor)
{
	look_at_clients(advisor);
	look_at_refusals(advisor);
	look_at_auth_failures(advisor);
	look_at_descriptors(advisor);
	look_at_certificates(advisor);
	look_at_cores(advisor);
	look_at_log(advisor);
}

bool process_advice_write(const struct advice *finding, bool with_names, struct buffer *out)
{
	switch ((int)finding->kind) {
	case ADVICE_CLIENT_LIMIT:
		write_clients(finding, out);
		return true;
	case ADVICE_CLIENTS_REFUSED:
		write_refusals(finding, out);
		return true;
	case ADVICE_AUTH_FAILURES:
		write_auth_failures(finding, out);
		return true;
	case ADVICE_DESCRIPTOR_LIMIT:
		write_descriptors(finding, out);
		return true;
	case ADVICE_CERTIFICATE_ENDS:
		write_certificate(finding, with_names, out);
		return true;
	case ADVICE_PROCESS_BUSY:
		write_cores(finding, with_names, out);
		return true;
	case ADVICE_LOG_LOST:
		write_log(finding, out);
		return true;
	default:
		return false;
	}
}
