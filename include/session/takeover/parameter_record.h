/* SPDX-License-Identifier: ISC */
/*
 * Sets of parameters in the records of a takeover: fields with names and values. What is read comes from
 * another process, perhaps of another version, which may track other parameters.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_PARAMETER_RECORD_H
#define PGUSHER_SESSION_TAKEOVER_PARAMETER_RECORD_H

#include "model/link.h"
#include "wire/tagged.h"

/* Append a field of this tag with the tracked parameters of the set: names and values. */
void parameter_record_write(struct buffer *out, uint16_t tag,
	const struct parameter_table *table, const struct parameters *set);

/*
 * Append the set as two fields: of its tracked parameters, and of its followed ones, if it has some:
 * name, 1 or 0 (with a value or not), value. An uncertain value is written as none.
 */
void parameter_record_write_set(
	struct buffer *out, uint16_t tracked, uint16_t followed, const struct parameters *set);

/*
 * Return the set with these names and values, a reference for the caller. Names that are not
 * tracked are skipped. Returns NULL when out of memory.
 */
struct parameters *parameter_record_read(
	struct parameter_table *table, const struct tagged_span *bytes);

/*
 * Return a set as parameter_record_read() does, with the followed parameters of a link of this
 * kind too. Returns NULL when out of memory, or when there are too many followed parameters.
 */
struct parameters *parameter_record_read_set(struct parameter_table *table, enum link_kind kind,
	const struct tagged_span *tracked, const struct tagged_span *followed);

#endif
