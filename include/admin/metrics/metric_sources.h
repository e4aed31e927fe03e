/* SPDX-License-Identifier: ISC */
/*
 * The sources that the table of metrics names, and the figures of their rows. Sources read
 * counters that are kept up to date all the time: no source walks over clients.
 */
#ifndef PGUSHER_ADMIN_METRICS_METRIC_SOURCES_H
#define PGUSHER_ADMIN_METRICS_METRIC_SOURCES_H

#include "admin/metrics/metric_family.h"

/* The figures of a source with a single number. */
struct metric_number {
	int64_t number;
};

/* --- admin/metrics/metric_pools.c --------------------------------------------------------- */

/* A row for each row of SHOW POOLS. */
struct pool_figures {
	int64_t client_active, client_active_cancel, client_waiting, client_waiting_cancel;
	int64_t server_active, server_active_cancel, server_being_canceled, server_idle,
		server_used, server_testing, server_login;
	int64_t longest_wait;
};

struct pool_figures metric_figures_of_pool(const struct pool *pool, usec_t now);

/* A row for each row of SHOW STATS_TOTALS. */
struct traffic_figures {
	int64_t queries, query_time, received, sent, wait_time, transactions, transaction_time,
		client_parses, server_parses, binds, assignments;
};

/* A row for each row of SHOW DATABASES. */
struct database_figures {
	int64_t pool_size, reserve_pool, max_connections, current_connections, paused, disabled;
};

/* A row for each pool. */
struct capacity_figures {
	int64_t size, reserve_in_use, waiters_limit, notified, pinned, oldest_transaction,
		oldest_idle_transaction;
	int64_t channels, subscriptions, notifications, notify_overflows, listening_losses;
};

/* metric_hosts has a row for each host of a database that was tried; the others see above. */
extern const struct metric_source metric_pools, metric_traffic, metric_databases,
	metric_client_groups, metric_capacity, metric_hosts, metric_pins, metric_unsent,
	metric_slow;

/* --- admin/metrics/metric_hosts.c --------------------------------------------------------- */

/* A row for each row of SHOW HOSTS. */
struct known_host_figures {
	int64_t up, is_primary, connections, connect_time, lag_bytes, lag_time;
};

struct known_host_figures metric_figures_of_host(const struct host *host);

extern const struct metric_source metric_known_hosts;

/* --- admin/metrics/metric_prepared.c ------------------------------------------------------ */

/* A row for each database in which statements were prepared. */
struct prepared_figures {
	int64_t entries, hits, misses, evictions;
};

extern const struct metric_source metric_prepared, metric_prepared_bytes;

/* --- admin/metrics/metric_process.c ------------------------------------------------------- */

/* One row. */
struct list_figures {
	int64_t databases, users, pools, free_clients, used_clients, login_clients,
		free_servers, used_servers, dns_names, dns_zones, dns_queries;
};

/* One row. */
struct config_figures {
	int64_t up, max_client_connections, max_user_connections;
};

/* One row. */
struct process_figures {
	int64_t cpu, open_descriptors, most_descriptors, resident, virtual, virtual_most,
		started;
};

/* `started` is not set. */
struct process_figures metric_figures_of_process(void);

/* The state in force of pgusher_state: active, paused, suspended or shutdown. */
const char *metric_state_of(const struct process *process);

/* A row for all clients, each database, each user. */
struct limit_figures {
	int64_t limit, current;
};

extern const struct metric_source metric_lists, metric_config, metric_version, metric_process,
	metric_build, metric_state, metric_client_limits, metric_memory, metric_http,
	metric_certificates, metric_dropped;

/* --- admin/metrics/metric_workers.c ------------------------------------------------------- */

/* A row for each row of SHOW WORKERS; metric_worker_moves has two. */
struct worker_figures {
	int64_t turns, busy, clients, servers, stops, wake_ups, mails;
};

extern const struct metric_source metric_workers, metric_worker_moves;

/* --- admin/metrics/metric_advice.c -------------------------------------------------------- */

/* A row for each row of SHOW ADVICE. */
extern const struct metric_source metric_advice;

/* --- admin/metrics/metric_counters.c ------------------------------------------------------ */

/* The errors with one text of pgbouncer_errors_count; the texts are a closed set. */
struct error_text {
	char text[FAILURE_TEXT_SIZE];
	uint64_t count;
};

/* Write the texts, each once, with their counts. Returns their number. */
unsigned metric_error_texts(
	const struct counters *counters, struct error_text out[REASON_COUNT]);

/* One row. */
struct reload_figures {
	int64_t successful, succeeded_at;
};

/* Rows for each value of a label; counters of databases have rows only where they are not 0. */
extern const struct metric_source metric_logins_delayed;
extern const struct metric_source metric_errors, metric_client_rejected, metric_auth_failures,
	metric_protocol_errors, metric_cancel_requests, metric_reloads, metric_last_reload,
	metric_server_opened, metric_server_closed, metric_client_closed, metric_server_reset,
	metric_unclean_release, metric_server_errors, metric_accept_paused, metric_log_messages,
	metric_dns_lookups, metric_dns_changes;

/* --- admin/metrics/metric_times.c --------------------------------------------------------- */

/*
 * The figures are one histogram, except metric_loop_busy's. metric_queries, _transactions and
 * _waits have a row for each pool that had a query.
 */
extern const struct metric_source metric_server_connects, metric_client_logins, metric_queries,
	metric_transactions, metric_waits, metric_handshakes, metric_loop_lag, metric_loop_busy;

/* When this process was started, in microseconds since 1970. */
usec_t metric_process_start(void);

#endif
