/* SPDX-License-Identifier: ISC */
#include "session/server/host_capacity.h"

#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "session/link/close.h"
#include "session/relay/own_query.h"

/* How long an answer counts, and how soon a question without an answer is repeated. */
#define REFRESH (300 * USEC_PER_SEC)
#define RETRY (5 * USEC_PER_SEC)

/* PostgreSQL: MAX_BACKENDS, the most that max_connections can be. */
enum { CONNECTIONS_MOST = 262143 };

#define CONNECTIONS                                                                            \
	"SELECT pg_catalog.current_setting('max_connections'), "                               \
	"pg_catalog.current_setting('superuser_reserved_connections')"

/*
 * reserved_connections is new in PostgreSQL 16. The limits do not hold for superusers. Only members of
 * pg_read_server_files that may also call the function can read files of the machine: the last column
 * tells whether the role can.
 */
#define ALL                                                                                    \
	CONNECTIONS ", pg_catalog.current_setting('reserved_connections', true), "             \
		    "(SELECT r.rolconnlimit FROM pg_catalog.pg_roles r "                       \
		    "WHERE r.rolname = SESSION_USER AND NOT r.rolsuper), "                     \
		    "(SELECT d.datconnlimit FROM pg_catalog.pg_database d, "                   \
		    "pg_catalog.pg_roles r WHERE d.datname = pg_catalog.current_database() "   \
		    "AND r.rolname = SESSION_USER AND NOT r.rolsuper), "                       \
		    "(SELECT pg_catalog.pg_has_role(g.oid, 'USAGE') "                          \
		    "FROM pg_catalog.pg_roles g WHERE g.rolname = 'pg_read_server_files') "    \
		    "AND pg_catalog.has_function_privilege(pg_catalog.to_regprocedure("        \
		    "'pg_catalog.pg_read_file(text,bigint,bigint,boolean)'), 'EXECUTE')"

/* A question of its own: PostgreSQL refuses any text with the function to those who may not call it. */
#define FILES                                                                                  \
	"SELECT pg_catalog.pg_read_file('/sys/devices/system/cpu/online', 0, 100, true), "     \
	"pg_catalog.pg_read_file('/sys/fs/cgroup/cpu.max', 0, 100, true)"

enum { FILES_COLUMNS = 2, CONNECTIONS_COLUMNS = 2 };

static usec_t now_of(const struct server_link *server)
{
	return loop_now(server->link.stream.loop);
}

static struct pool_sizing *sizing_of(const struct server_link *server)
{
	return server->link.pool->sizing;
}

/* --- when to ask -------------------------------------------------------------------------- */

/* Only for servers that run queries of clients. */
static bool is_common(const struct server_link *server)
{
	return !server->replication && !server->listens && !server->watches && server->at;
}

static bool is_due(const struct pool_sizing *sizing, usec_t now)
{
	const usec_t age = now - sizing->asked_at;

	if (sizing->asked)
		return false;
	return sizing->due || sizing->ask_again || sizing->asked_at == 0 || age > REFRESH ||
		(!sizing->answered && age > RETRY);
}

/* The host may have been started anew, with other settings. */
static bool is_first_of_host(const struct host *host)
{
	return host->servers <= 1 + (host->watch != NULL);
}

bool host_capacity_is_due_at_login(const struct server_link *server)
{
	const struct pool_sizing *sizing = sizing_of(server);

	if (!sizing || sizing->asked || !is_common(server))
		return false;
	if (sizing->ask_again)
		return true;
	/* At each login once at most. */
	return sizing->asked_at < server->link.connect_time &&
		(is_due(sizing, now_of(server)) || is_first_of_host(server->at) ||
			server->at->capacity.told_at == 0);
}

static bool may_ask(const struct server_link *server)
{
	const struct process *process = server->link.pool->registry->process;

	return is_common(server) && !server->close_needed && server->cancels == 0 &&
		server->cancels_queued == 0 && !pool_is_paused(server->link.pool) &&
		process->shutdown == SHUTDOWN_NONE && !process->draining && !process->still &&
		server_is_clean(server);
}

/* --- the question ------------------------------------------------------------------------- */

static const char *question_of(const struct pool_sizing *sizing, const struct host *host)
{
	if (sizing->asks_files)
		return FILES;
	switch (host->capacity.question) {
	case CAPACITY_ALL:
		return ALL;
	case CAPACITY_CONNECTIONS:
		return CONNECTIONS;
	case CAPACITY_NOTHING:
		break;
	}
	return "";
}

void host_capacity_send(struct server_link *server)
{
	struct pool_sizing *sizing = sizing_of(server);
	struct host *host = server->at;

	/* Once in a while it may be asked for all again: it may be another server. */
	if (host->capacity.told_at > 0 && now_of(server) - host->capacity.told_at > REFRESH)
		host->capacity.question = CAPACITY_ALL;
	sizing->asked = server;
	server->tells_capacity = true;
	sizing->asked_at = now_of(server);
	sizing->answered = sizing->asks_files;
	sizing->due = sizing->ask_again = sizing->interrupted = false;
	if (own_query_send(server, question_of(sizing, host)))
		server_set_task(server, SERVER_TASK_CAPACITY);
}

bool host_capacity_ask(struct server_link *server)
{
	struct pool_sizing *sizing = sizing_of(server);

	server->capacity_due = false;
	if (!sizing || !may_ask(server) || !is_due(sizing, now_of(server)))
		return false;
	/* Asking is no use: see SERVER_ASKING in daemon/server_upkeep, and server_idle_timeout. */
	sizing->used_at = server->link.request_time;
	server->link.request_time = now_of(server);
	if (server->link.state != SERVER_ASKING)
		server_enter(server, SERVER_ASKING);
	host_capacity_send(server);
	return true;
}

bool host_capacity_is_asked(const struct server_link *server)
{
	return server->tells_capacity;
}

/* Is the answer still wanted? A RELOAD may have given the pool a number meanwhile. */
static bool is_wanted(const struct server_link *server)
{
	return sizing_of(server) && sizing_of(server)->asked == server;
}

/* --- the answer --------------------------------------------------------------------------- */

/* A value as a text with a NUL; one that is NULL or too long is empty. */
static const char *text_of(const struct row_value *value, char out[128])
{
	const size_t length = value->data && value->length < 128 ? value->length : 0;

	if (length > 0)
		memcpy(out, value->data, length);
	out[length] = '\0';
	return out;
}

/* A number of connections; 0: none, or anything else. */
static unsigned connections_of(const struct row_value *value)
{
	char text[128];
	size_t digits;
	unsigned long number;

	text_of(value, text);
	digits = strspn(text, "0123456789");
	if (digits == 0 || digits > 9 || text[digits] != '\0')
		return 0;
	number = strtoul(text, NULL, 10);
	return number <= CONNECTIONS_MOST ? (unsigned)number : 0;
}

static unsigned cores_of_files(const struct row_value *online, const struct row_value *quota)
{
	char text[128];
	const unsigned all = cores_in_list(text_of(online, text));
	const unsigned limit = cores_in_quota(text_of(quota, text));

	return all > 0 && limit > 0 && limit < all ? limit : all;
}

bool host_capacity_is_here(const struct server_link *server)
{
	struct address local;

	if (server->link.remote.family == AF_UNIX)
		return true;
	local = address_local(server->link.stream.fd);
	local.port = server->link.remote.port;
	return address_equal(&local, &server->link.remote);
}

static void take_cores(struct server_link *server, unsigned told)
{
	struct host_capacity *capacity = &server->at->capacity;

	capacity->cores = told > 0		? told
		: host_capacity_is_here(server) ? cores_available()
						: 0;
	capacity->cores_from = told > 0 ? CORES_OF_SERVER
		: capacity->cores > 0	? CORES_OF_PROCESS
					: CORES_UNKNOWN;
}

static void take_connections(
	struct server_link *server, const struct row_value values[HOST_CAPACITY_COLUMNS])
{
	struct pool_sizing *sizing = sizing_of(server);
	struct host_capacity *capacity = &server->at->capacity;

	sizing->answered = true;
	capacity->told_at = now_of(server);
	capacity->max_connections = connections_of(&values[0]);
	capacity->reserved = connections_of(&values[1]) + connections_of(&values[2]);
	sizing->role_limit = connections_of(&values[3]);
	sizing->database_limit = connections_of(&values[4]);
	sizing->asks_files = values[5].length == 1 && values[5].data[0] == 't';
	sizing->ask_again = sizing->asks_files;
	/* What another role has read there counts on, unless it may be another machine now. */
	if (capacity->cores_from != CORES_OF_SERVER || is_first_of_host(server->at))
		take_cores(server, 0);
}

void host_capacity_take_row(struct server_link *server, int columns,
	const struct row_value values[HOST_CAPACITY_COLUMNS])
{
	struct pool_sizing *sizing = sizing_of(server);

	if (!is_wanted(server))
		return;
	if (sizing->asks_files && columns == FILES_COLUMNS && !sizing->ask_again)
		take_cores(server, cores_of_files(&values[0], &values[1]));
	else if (!sizing->answered &&
		(columns == CONNECTIONS_COLUMNS || columns == HOST_CAPACITY_COLUMNS))
		take_connections(server, values);
}

/* Ask the host for less the next time. */
static void lower_question(struct host *host)
{
	if (host->capacity.question < CAPACITY_NOTHING)
		host->capacity.question++;
}

void host_capacity_refused(struct server_link *server, const struct report *report)
{
	struct pool_sizing *sizing = sizing_of(server);

	if (!is_wanted(server))
		return;
	/* Of the last client of the server, maybe: another one may do it. */
	sizing->interrupted = report_is_time_limit(report) || report_is_of(report, "57") ||
		report_is_of(report, "53");
	if (sizing->interrupted)
		return;
	if (sizing->asks_files) {
		take_cores(server, 0);
	} else {
		lower_question(server->at);
		sizing->ask_again = server->at->capacity.question < CAPACITY_NOTHING;
	}
	link_log_repeated(&server->link, LEVEL_DEBUG, "cannot ask for max_connections: %s",
		report->text ? report->text : "no message");
}

/* The server does not tell: that is known now. */
static void take_nothing(struct server_link *server)
{
	struct host_capacity *capacity = &server->at->capacity;

	capacity->told_at = now_of(server);
	capacity->max_connections = capacity->reserved = 0;
	take_cores(server, 0);
	sizing_of(server)->answered = true;
}

static void take_end(struct server_link *server)
{
	struct registry *registry = link_registry(&server->link);
	struct pool_sizing *sizing = sizing_of(server);

	sizing->asked = NULL;
	if (server->link.state == SERVER_ASKING)
		server->link.request_time = sizing->used_at;
	sizing->asks_files = sizing->asks_files && sizing->ask_again;
	if (!sizing->answered && !sizing->ask_again && !sizing->interrupted)
		take_nothing(server);
	if (sizing->answered && registry->size_pools)
		loop_defer_work(registry->loop, &registry->sizing_task, registry->size_pools);
}

bool host_capacity_done(struct server_link *server)
{
	server->tells_capacity = false;
	if (is_wanted(server))
		take_end(server);
	return server_is_clean(server);
}

/* It may be the question for which the server has closed the connection. */
void host_capacity_server_closed(struct server_link *server)
{
	if (!is_wanted(server))
		return;
	sizing_of(server)->asked = NULL;
	sizing_of(server)->asks_files = sizing_of(server)->ask_again = false;
	lower_question(server->at);
}

/* --- from time to time -------------------------------------------------------------------- */

void host_capacity_upkeep(struct pool *pool)
{
	struct link *link = TAILQ_FIRST(&pool->servers[SERVERS_IDLE]);

	if (!pool->sizing || !is_due(pool->sizing, loop_now(pool->registry->loop)))
		return;
	if (link && host_capacity_ask(server_of(link)))
		return;
	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place) {
		if (link->state == SERVER_PAIRED && is_common(server_of(link))) {
			server_of(link)->capacity_due = true;
			return;
		}
	}
}
