/* SPDX-License-Identifier: ISC */
/*
 * What the databases do in a second, from two answers to SHOW STATS.
 *
 * Totals that fall, since a pool was dropped or the pooler is a new process, give no rate until
 * the next answer.
 */
#ifndef PGUSHER_TOP_RATES_H
#define PGUSHER_TOP_RATES_H

#include <stdbool.h>

#include "base/clock.h"
#include "top/table.h"

enum { RATES_NAME_SIZE = 128 };

struct rate {
	char database[RATES_NAME_SIZE]; /* cut */
	bool known; /* there was an answer before */
	double transactions, queries; /* a second */
	double received, sent; /* bytes a second */
	double query_ms, wait_ms; /* of one query, of one transaction; 0 if there was none */
};

struct rates {
	struct rate_total *totals; /* by name */
	struct rate *list; /* by name */
	size_t count;
	struct rate sum;
	usec_t at;
};

/* A zeroed struct is empty. */
void rates_free(struct rates *rates);

/* Take an answer to SHOW STATS; the rates are those since the one before. */
void rates_take(struct rates *rates, const struct table *stats, usec_t now);

/* Returns the rates of a database, owned by `rates` until the next answer; NULL if unknown. */
const struct rate *rates_find(const struct rates *rates, const char *database);

#endif
