/* SPDX-License-Identifier: ISC */
/*
 * Peers' texts made safe for the SQL that we send ourselves.
 *
 * As in wire/writer, lack of memory is seen in the buffer's `failed`.
 */
#ifndef PGUSHER_WIRE_SQL_H
#define PGUSHER_WIRE_SQL_H

#include <stdbool.h>

#include "base/buffer.h"

/*
 * Append a text as 'literal', as E'literal' if it has backslashes, or as $q$literal$q$ if it has
 * these and is not ASCII: read alike by any server, in any encoding.
 */
void sql_append_literal(struct buffer *buffer, const char *text);

/*
 * Append a list of names, as the value of search_path is one, so that it can stand behind
 * `SET search_path=`. Names that were quoted, or need it, are quoted; an empty name or an empty
 * list becomes ''. False: this is no list of names; then nothing was appended.
 */
bool sql_append_name_list(struct buffer *buffer, const char *list);

/*
 * Append the name of a parameter, as it stands behind SET or RESET: one with dots in quotes, since
 * any part of it may be a word that SQL takes for its own.
 */
void sql_append_setting_name(struct buffer *buffer, const char *name);

/*
 * Is this text, of `length` bytes, one DEALLOCATE of one name and nothing else? Then `name`, which
 * is empty, gets it as the server would read it, with a NUL. False: not so, or no memory.
 */
bool sql_deallocated_name(const char *text, size_t length, struct buffer *name);

/* Does this text, of `length` bytes, begin with DEALLOCATE ALL or DISCARD ALL? */
bool sql_forgets_statements(const char *text, size_t length);

#endif
