/* SPDX-License-Identifier: ISC */
/*
 * The page for browsers: its files, which are part of the program, and what its script asks for:
 * /api/state and /api/history, JSON of the present and of the last hour. Nothing here changes the
 * state of the process.
 *
 * With page_details = 0 no name of a database, user, host or application and no text of a query
 * is in any response: pools and hosts have numbers.
 */
#ifndef PGUSHER_ADMIN_PAGE_PAGE_H
#define PGUSHER_ADMIN_PAGE_PAGE_H

#include "admin/metrics/metrics.h"
#include "admin/page/history_json.h"
#include "admin/page/page_guard.h"
#include "admin/page/shared_document.h"
#include "admin/page/state_json.h"

/* Owned by the daemon; it must not move. */
struct page {
	struct registry *registry;
	struct page_guard guard;
	struct state_json state;
	struct history_json history;
	struct shared_document state_document, history_document;
};

/* Initialize; a process without metrics_port never does more than that. */
void page_init(struct page *page, struct registry *registry);

/* Returns what the metrics endpoint calls; valid as long as the page. */
struct metrics_site page_site(struct page *page);

#endif
