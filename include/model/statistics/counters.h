/* SPDX-License-Identifier: ISC */
/*
 * Counters of events since the start of the process, for the metrics. They never decrease.
 *
 * The labels are those of model/labels. Counters of a database are freed with it; the others
 * belong to the process. model/statistics/stats counts traffic.
 */
#ifndef PGUSHER_MODEL_STATISTICS_COUNTERS_H
#define PGUSHER_MODEL_STATISTICS_COUNTERS_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/histogram.h"
#include "model/client_link.h"
#include "model/server_link.h"
#include "model/statistics/meter.h"

struct process;

/* The counters of a database; allocated with the first event. */
struct database_counters {
	uint64_t server_opened;
	uint64_t server_closed[SERVER_CLOSINGS];
	uint64_t client_closed[CLIENT_CLOSINGS];
	uint64_t server_reset[RESET_OUTCOMES];
	uint64_t unclean_release[UNCLEAN_RELEASES];
	struct histogram *connects[CONNECT_OUTCOMES]; /* NULL: none yet */
	int8_t *hosts_up; /* for each host of the database: 1 up, 0 down, -1 unknown */
	unsigned hosts;
	/* How the counters of these names have grown, for advice. */
	struct meter opened, closed[SERVER_CLOSINGS];
};

/* The counters of one worker: counters_sum() has those of the process. */
struct counters {
	/* Errors that closed a connection; closing a server and its client counts once. */
	uint64_t errors[REASON_COUNT];
	uint64_t client_rejected[CLIENT_REJECTIONS];
	uint64_t auth_failed[AUTH_FAILURES];
	uint64_t protocol_errors[PROTOCOL_SIDES][PROTOCOL_ERRORS];
	uint64_t cancel_requests[CANCEL_OUTCOMES];
	uint64_t logins_delayed; /* those that waited because of auth_failure_delay */
	uint64_t client_logins; /* successful logins, also to the console */
	struct histogram logins[LOGIN_METHODS][LOGIN_OUTCOMES];
	struct database_counters nowhere; /* of clients that had no database yet */
	uint64_t reloads[RELOAD_OUTCOMES];
	bool last_reload_failed;
	usec_t last_reload; /* wall clock time of the last successful load */
};

/* Returns the counters of a database, which owns them; NULL when nothing was counted yet. */
const struct database_counters *counters_of_database(const struct database *database);

/* As counters_of_database(), but allocates them if necessary; NULL when out of memory. */
struct database_counters *counters_open(struct database *database);

/* Free the counters of a database. NULL is allowed. */
void counters_free(struct database_counters *counters);

/*
 * Sum the counters of all workers into those of the caller, whose contents may be anything. Of
 * `nowhere` only its counts are summed: it owns nothing.
 */
void counters_sum(const struct process *process, struct counters *sum);

/* --- counting ----------------------------------------------------------------------------- */

/* Functions for events of a database do not count when out of memory for its counters. */

/* A client is closed that was in this state. */
void counters_client_closed(
	const struct client_link *client, enum client_state state, const struct failure *why);

/*
 * A server is closed that was in this state. `with_client`: its client is closed for the same
 * reason, and the error is counted there.
 */
void counters_server_closed(const struct server_link *server, enum server_state state,
	const struct failure *why, bool with_client);

/*
 * A connection to a server is opened. An attempt that began at connect_time has this outcome.
 */
void counters_server_opened(struct database *database);
void counters_connected(const struct server_link *server, enum connect_outcome outcome);

/* A client was rejected for a reason that its close does not show. */
void counters_rejected(struct registry *registry, enum client_rejection why);

/*
 * The host of this server was usable, or not, at the last attempt. Hosts of a database are
 * numbered as in its configuration; a database without hosts uses a Unix socket, which is host
 * 0.
 */
void counters_host(const struct server_link *server, bool up);

/* Returns whether the state of the host is known, and sets `up` if so. */
bool counters_host_is_known(const struct database *database, unsigned host, bool *up);

/* The hosts of the database have changed: their state is unknown. */
void counters_forget_hosts(struct database *database);

/* The reset of a server's session has ended. A server could not be released as it was. */
void counters_reset(const struct server_link *server, enum reset_outcome outcome);
void counters_unclean(const struct server_link *server, enum unclean_release why);

#endif
