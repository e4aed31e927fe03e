/* SPDX-License-Identifier: ISC */
/*
 * Quotes texts of peers for SQL that we send, and recognizes a few SQL commands of clients.
 *
 * As in wire/writer, being out of memory sets the buffer's `failed`.
 */
#ifndef PGUSHER_WIRE_SQL_H
#define PGUSHER_WIRE_SQL_H

#include <stdbool.h>

#include "base/buffer.h"

/*
 * Append a text as 'literal', as E'literal' if it has backslashes, or as $q$literal$q$ if it
 * has backslashes and is not ASCII: every server reads these alike in any encoding.
 */
void sql_append_literal(struct buffer *buffer, const char *text);

/*
 * Append a list of names, such as the value of search_path, in the form that `SET
 * search_path=` takes. Names that were quoted, or need it, are quoted; an empty name or an
 * empty list becomes ''. Returns false and appends nothing if the text is not a list of names.
 */
bool sql_append_name_list(struct buffer *buffer, const char *list);

/* Append one name, in quotes if it needs them to be read unchanged. */
void sql_append_name(struct buffer *buffer, const char *name);

/*
 * Append the name of a parameter in the form that SET and RESET take: a name with dots is
 * quoted, since any part of it may be a reserved word.
 */
void sql_append_setting_name(struct buffer *buffer, const char *name);

/*
 * Whether the word, in lower case, cannot be the name of a prepared statement or a table without
 * quotes ("SQL Key Words": reserved, or reserved except as a function or type).
 */
bool sql_is_no_name(const char *word);

/*
 * Whether the text, of `length` bytes, is a single DEALLOCATE of one name and nothing else.
 * Then the name, as the server would read it, is appended with a NUL to `name`, which must be
 * empty. Also false when out of memory.
 */
bool sql_deallocated_name(const char *text, size_t length, struct buffer *name);

/* Whether the text, of `length` bytes, starts with DEALLOCATE ALL or DISCARD ALL. */
bool sql_forgets_statements(const char *text, size_t length);

#endif
