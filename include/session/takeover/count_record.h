/* SPDX-License-Identifier: ISC */
/*
 * What has been counted, written down as one field of a record, so that another process counts on
 * where this one ends.
 *
 * Everything is told by its words and sizes, never by a place in an array: sets of labels, buckets
 * and cells may be others in the next version. What a reader does not know it leaves out, and what
 * it knows it adds to what it has counted itself.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_COUNT_RECORD_H
#define PGUSHER_SESSION_TAKEOVER_COUNT_RECORD_H

#include "model/registry.h"

/*
 * Write a field of this tag: what belongs to no database, to a database, to a pool (its totals
 * aside, which session/takeover/inventory tells).
 */
void count_record_write_process(
	struct buffer *out, uint16_t tag, const struct registry *registry);
void count_record_write_database(
	struct buffer *out, uint16_t tag, const struct database *database);
void count_record_write_pool(struct buffer *out, uint16_t tag, const struct pool *pool);

/* Add what such a field tells; what is broken in it is left out, and all that follows. */
void count_record_add_process(struct registry *registry, const void *field, size_t length);
void count_record_add_database(struct database *database, const void *field, size_t length);
void count_record_add_pool(struct pool *pool, const void *field, size_t length);

#endif
