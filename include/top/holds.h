/* SPDX-License-Identifier: ISC */
/*
 * For how long queries were seen on their servers, from one answer to the next.
 *
 * The console tells how long a query takes with its time in the queue. The time since the server
 * last sent something bounds the time at the server, but for results that come in parts: only a
 * query that is seen again and again at the same server is known to have held it all that time.
 */
#ifndef PGUSHER_TOP_HOLDS_H
#define PGUSHER_TOP_HOLDS_H

#include <stddef.h>

#include "base/clock.h"
#include "top/table.h"

struct holds {
	struct hold *list; /* by the handle of the client */
	size_t count;
};

/* A zeroed struct is empty. */
void holds_free(struct holds *holds);

/* Take an answer to SHOW CLIENTS that has just come. When out of memory, nothing is known. */
void holds_take(struct holds *holds, const struct table *clients, usec_t now);

/* For how long, in seconds, the query of this client was seen at the server that it has now; 0. */
double holds_find(const struct holds *holds, const char *client);

#endif
