/* SPDX-License-Identifier: ISC */
/*
 * What happened since the start, by closed sets of labels: for the metrics, and never lowered.
 *
 * The sets are those of model/labels. What belongs to a database goes with it; what belongs to
 * none stands with the process. Traffic is counted by model/stats.
 */
#ifndef PGUSHER_MODEL_COUNTERS_H
#define PGUSHER_MODEL_COUNTERS_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/histogram.h"
#include "model/client_link.h"
#include "model/server_link.h"

/* Of a database; made when there is something to count. */
struct database_counters {
	uint64_t server_opened;
	uint64_t server_closed[SERVER_CLOSINGS];
	uint64_t client_closed[CLIENT_CLOSINGS];
	uint64_t server_reset[RESET_OUTCOMES];
	uint64_t unclean_release[UNCLEAN_RELEASES];
	struct histogram *connects[CONNECT_OUTCOMES]; /* NULL: none yet */
	int8_t *hosts_up; /* of each host that the database lists; -1: not known yet */
	unsigned hosts;
};

/* Of the process. */
struct counters {
	/* Errors that ended a connection; a client that goes with its server is counted once. */
	uint64_t errors[REASON_COUNT];
	uint64_t client_rejected[CLIENT_REJECTIONS];
	uint64_t auth_failed[AUTH_FAILURES];
	uint64_t protocol_errors[PROTOCOL_SIDES][PROTOCOL_ERRORS];
	uint64_t cancel_requests[CANCEL_OUTCOMES];
	uint64_t client_logins; /* that succeeded, the console's too */
	struct histogram logins[LOGIN_METHODS][LOGIN_OUTCOMES];
	struct database_counters nowhere; /* of clients that never had a database */
	uint64_t reloads[RELOAD_OUTCOMES];
	bool last_reload_failed;
	usec_t last_reload; /* wall clock: when a configuration was last taken, the first too */
};

/* What a database has counted so far; NULL: nothing. */
const struct database_counters *counters_of_database(const struct database *database);

/* The same, made if need be; NULL without memory: then it is not counted. */
struct database_counters *counters_open(struct database *database);

/* Before a database's memory goes. */
void counters_free(struct database_counters *counters);

/* --- counting ----------------------------------------------------------------------------- */

/* A client ends that was in this state. */
void counters_client_closed(
	const struct client_link *client, enum client_state state, const struct failure *why);

/* A server ends that was in this state; `with_client`: a client ends with it, which counts. */
void counters_server_closed(const struct server_link *server, enum server_state state,
	const struct failure *why, bool with_client);

/* A connection to a server is being opened; how an attempt went that began at connect_time. */
void counters_server_opened(struct database *database);
void counters_connected(const struct server_link *server, enum connect_outcome outcome);

/* Somebody who wanted to be a client was sent away for another reason than he is told. */
void counters_rejected(struct registry *registry, enum client_rejection why);

/*
 * Whether the host that a server connects to could be used when that was last tried. The hosts of
 * a database are numbered as in its configuration; one without any has our own sockets as host 0.
 */
void counters_host(const struct server_link *server, bool up);

/* Is it known whether the host is up? */
bool counters_host_is_known(const struct database *database, unsigned host, bool *up);

/* The database has other hosts from now on. */
void counters_forget_hosts(struct database *database);

/* A server whose session was to be reset was, or one could not be given back as it was. */
void counters_reset(const struct server_link *server, enum reset_outcome outcome);
void counters_unclean(const struct server_link *server, enum unclean_release why);

#endif
