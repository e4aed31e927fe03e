/* SPDX-License-Identifier: ISC */
/*
 * Writes /api/history: the last hour of all pools together, which have the id 0, and of each pool
 * that has a history (model/statistics/history).
 */
#ifndef PGUSHER_ADMIN_PAGE_HISTORY_JSON_H
#define PGUSHER_ADMIN_PAGE_HISTORY_JSON_H

#include "admin/page/shared_document.h"
#include "base/json.h"
#include "model/registry.h"
#include "model/statistics/history.h"

struct history_json {
	struct registry *registry;
	struct json json;
	uint64_t chosen[HISTORY_POOLS]; /* handles of pools, in process.handles */
	unsigned chosen_count, next;
	usec_t end; /* of the last step; another one: the document is begun anew */
};

void history_json_init(struct history_json *history, struct registry *registry);

/* Returns what writes the document; valid as long as `history`. */
struct document_writer history_json_writer(struct history_json *history);

#endif
