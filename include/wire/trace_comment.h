/* SPDX-License-Identifier: ISC */
/*
 * Finds the traceparent in a comment of an SQL text, as sqlcommenter writes it. The comment has items
 *
 *	controller='index',traceparent='00-<32 hex>-<16 hex>-<2 hex>'
 *
 * and stands at the end of the text, or at its beginning. Keys and values are URL-encoded.
 * Whatever is not exactly a traceparent of W3C Trace Context is ignored.
 */
#ifndef PGUSHER_WIRE_TRACE_COMMENT_H
#define PGUSHER_WIRE_TRACE_COMMENT_H

#include <stdbool.h>
#include <stddef.h>

enum { TRACE_PARENT_LENGTH = 55 };

/*
 * Copy the traceparent to `out`, with a NUL. Returns false, and sets nothing, if there is none.
 * is_end: `text` is only the end of a longer text, which may begin inside of the comment.
 */
bool trace_comment_find(
	const char *text, size_t length, bool is_end, char out[TRACE_PARENT_LENGTH + 1]);

/*
 * Returns whether the bytes are a valid traceparent: version, trace id, parent id and flags in
 * lower-case hex, with a version other than ff and ids that are not all zeros.
 */
bool trace_comment_is_parent(const char *text, size_t length);

#endif
