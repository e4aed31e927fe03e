/* SPDX-License-Identifier: ISC */
/*
 * Reports a query that has ended, if it was slow: in the log, in the ring of SHOW SLOW and in the
 * counters of its pool.
 */
#ifndef PGUSHER_SESSION_SLOW_SLOW_REPORT_H
#define PGUSHER_SESSION_SLOW_SLOW_REPORT_H

#include "session/slow/query_watch.h"

/*
 * The query of the client has ended at `end`. why: the failure that has ended it; NULL: it has its
 * answer. Does nothing if it took less than log_min_duration.
 */
void slow_report(const struct client_link *client, const struct watched_query *query,
	usec_t end, const struct failure *why);

/*
 * Log how many slow queries of a second that is over have no line, because of log_slow_rate. To be
 * called from time to time.
 */
void slow_report_left_out(const struct registry *registry);

#endif
