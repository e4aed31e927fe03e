/* SPDX-License-Identifier: ISC */
/* Judges an ErrorResponse of a server, and sends other errors instead of it. */
#ifndef PGUSHER_SESSION_RULES_SERVER_ERRORS_H
#define PGUSHER_SESSION_RULES_SERVER_ERRORS_H

#include "session/relay/relay.h"

/*
 * The judge of ErrorResponse, for the tables of servers. It may be the start of a message that
 * is too long to be whole.
 */
enum verdict server_errors_judge(struct relay_run *run);

#endif
