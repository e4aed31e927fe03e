/* SPDX-License-Identifier: ISC */
/* What an ErrorResponse of a server means, and the errors that are sent instead of it. */
#ifndef PGUSHER_SESSION_RULES_SERVER_ERRORS_H
#define PGUSHER_SESSION_RULES_SERVER_ERRORS_H

#include "session/relay/relay.h"

/* The row of the tables for servers: judges an ErrorResponse. */
enum verdict server_errors_judge(struct relay_run *run);

#endif
