/* SPDX-License-Identifier: ISC */
/* The views of the screen: which SHOWs each needs, its columns, and how its rows are made. */
#ifndef PGUSHER_TOP_VIEW_H
#define PGUSHER_TOP_VIEW_H

#include "top/feed.h"
#include "top/holds.h"
#include "top/rates.h"
#include "top/sheet.h"

/* What rows are made of. */
struct view_source {
	const struct feed *feed;
	const struct rates *rates;
	const struct holds *holds;
	size_t width; /* of the page, for texts that are folded */
};

struct view {
	char key;
	const char *name; /* on the line of views */
	const char *help;
	unsigned topics; /* TOPIC_BIT() of those that the rows need */
	enum topic main; /* without which there are no rows */
	const struct sheet_column *columns; /* NULL: `fill` begins the sheet with its own */
	size_t column_count;
	size_t sorted; /* the column to sort by; SIZE_MAX: as the rows come */
	void (*fill)(struct sheet *sheet, const struct view_source *source);
};

enum { VIEWS = 6 };

extern const struct view view_pools, view_servers, view_clients, view_waits, view_advice,
	view_slow;

/* The views in the order of their line. */
extern const struct view *const views[VIEWS];

/* What all views need, for the lines above them. */
#define VIEW_COMMON_TOPICS                                                                     \
	(TOPIC_BIT(TOPIC_VERSION) | TOPIC_BIT(TOPIC_STATE) | TOPIC_BIT(TOPIC_CONFIG) |         \
		TOPIC_BIT(TOPIC_LISTS) | TOPIC_BIT(TOPIC_DATABASES) | TOPIC_BIT(TOPIC_STATS) | \
		TOPIC_BIT(TOPIC_POOLS) | TOPIC_BIT(TOPIC_ADVICE))

/* Add a cell with an address and a port of a row, as they are written together. */
void view_add_place(struct sheet *sheet, const struct table *table, size_t row, size_t address,
	size_t port);

#endif
