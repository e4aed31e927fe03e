/* SPDX-License-Identifier: ISC */
/*
 * Writes /api/state: what the process, its pools and its hosts do at the moment, with the advice.
 * doc/metrics.md describes the members. No part of it walks over clients.
 */
#ifndef PGUSHER_ADMIN_PAGE_STATE_JSON_H
#define PGUSHER_ADMIN_PAGE_STATE_JSON_H

#include "admin/page/shared_document.h"
#include "admin/page/state_pools.h"

struct state_json {
	struct registry *registry;
	usec_t started; /* start of the process, microseconds since 1970 */
	struct json json;
	bool details;
	struct state_pools pools;
	int64_t cpu; /* processor time at `cpu_at`, microseconds */
	usec_t cpu_at; /* the loop's time; 0: not known yet */
};

void state_json_init(struct state_json *state, struct registry *registry);

/* Returns what writes the document; valid as long as `state`. */
struct document_writer state_json_writer(struct state_json *state);

#endif
