/* SPDX-License-Identifier: ISC */
/*
 * Writes counters into one field of a record, so that another process continues counting from
 * their values, and adds the counters of such a field.
 *
 * Every counter is identified by its labels and sizes, never by an index: another version may
 * have other labels, buckets and cells. A reader skips what it does not know, and adds the rest
 * to its own counters.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_COUNT_RECORD_H
#define PGUSHER_SESSION_TAKEOVER_COUNT_RECORD_H

#include "model/registry.h"

/*
 * Append a field of this tag with the counters of the process (those that belong to no
 * database), of a database, or of a pool (without its traffic totals, which takeover/inventory
 * writes). When out of memory, out->failed is set.
 */
void count_record_write_process(
	struct buffer *out, uint16_t tag, const struct registry *registry);
void count_record_write_database(
	struct buffer *out, uint16_t tag, const struct database *database);
void count_record_write_pool(struct buffer *out, uint16_t tag, const struct pool *pool);

/* Add the counters of such a field. A malformed counter and all behind it are skipped. */
void count_record_add_process(struct registry *registry, const void *field, size_t length);
void count_record_add_database(struct database *database, const void *field, size_t length);
void count_record_add_pool(struct pool *pool, const void *field, size_t length);

#endif
