/* SPDX-License-Identifier: ISC */
/* The whole page, for a terminal of any size or a snapshot: summary, views, rows, and keys. */
#ifndef PGUSHER_TOP_COMPOSE_H
#define PGUSHER_TOP_COMPOSE_H

#include "top/console_link.h"
#include "top/page.h"
#include "top/ui.h"

/* What pages are made of. */
struct compose_source {
	const struct feed *feed;
	const struct rates *rates;
	const struct holds *holds;
	const struct console_link *link;
	const char *place; /* host and port of the console, as the operator would write them */
	usec_t now;
};

/* Make the page of a terminal. Notes in `ui` how many rows there are, and how many are shown. */
void compose_screen(struct page *page, struct ui *ui, const struct compose_source *source,
	size_t width, size_t height);

/* Make the page of a snapshot: the summary, then each view that has something to show. */
void compose_snapshot(struct page *page, const struct compose_source *source, size_t width);

/* The SHOWs that a snapshot needs. */
unsigned compose_snapshot_topics(void);

#endif
