/* SPDX-License-Identifier: ISC */
/*
 * What a reason means beyond its text: how a connection that is closed for it is counted, and
 * what it means for a server. The facts are columns of base/reasons.def, explained there.
 */
#ifndef PGUSHER_MODEL_STATISTICS_REASON_FACTS_H
#define PGUSHER_MODEL_STATISTICS_REASON_FACTS_H

#include <stdbool.h>

#include "base/failure.h"
#include "model/statistics/labels.h"

/* What counts a client, or a server, that is closed. */
enum client_closing reason_client_closed(enum reason reason);
enum server_closing reason_server_closed(enum reason reason);

/* What counts a client that is closed before it has logged in; CLIENT_REJECTIONS: nothing. */
enum client_rejection reason_client_rejected(enum reason reason);

/* What counts a client that was asked to authenticate; AUTH_FAILURES: nothing. */
enum auth_failure reason_auth_failed(enum reason reason);

/* The protocol error of the side that is closed; PROTOCOL_ERRORS: none. */
enum protocol_error reason_protocol_error(enum reason reason, enum protocol_side side);

/* The outcome of a cancel request; CANCEL_OUTCOMES: the reason is not about one. */
enum cancel_outcome reason_cancel_outcome(enum reason reason);

/* What counts a query that ends unsent; the reason must be one of those. */
enum unsent_ending reason_unsent_ending(enum reason reason);

/* The outcome of an attempt to log in to a server that is closed. */
enum connect_outcome reason_connect_outcome(enum reason reason);

/* Is it an error of the server that is closed, as opposed to an orderly end? */
bool reason_is_server_error(enum reason reason);

/* Has a server failed to log in, if it is closed while it logs in? */
bool reason_fails_login(enum reason reason);

/* Is the connection to the server itself broken, so that nothing can be sent to it? */
bool reason_breaks_connection(enum reason reason);

#endif
