/* SPDX-License-Identifier: ISC */
/*
 * The answer of a SHOW, built in slices over several turns of the event loop, so that traffic
 * goes on however many rows there are. Only this module knows of slices: a topic lists the
 * objects that it has rows about, and then adds the rows of one object after the other.
 *
 * Objects are listed first, by handle, in the order of their rows. An object may be freed, move
 * to another list or change before its rows are built: a freed object is left out, no object is
 * shown twice, and rows have the values of the moment in which they are built. Links are listed
 * list by list if they are few. Many links are listed in the order of their ids, which takes
 * several turns, and are then sorted by the place that the topic gives them.
 */
#ifndef PGUSHER_ADMIN_SHOW_SHOW_STREAM_H
#define PGUSHER_ADMIN_SHOW_SHOW_STREAM_H

#include "admin/show/clauses.h"
#include "admin/show/result.h"
#include "admin/show/topic.h"
#include "model/link_walk.h"

struct show_stream {
	struct registry *registry;
	struct client_link *client; /* the console that asks; it outlives the stream */
	size_t text_length; /* of the command */
	const struct topic *topic;
	struct clauses clauses; /* a copy, which the options points to if there are any */
	struct result result;
	struct buffer objects; /* struct listed_object each */
	struct link_walk walk; /* valid while is_walking */
	uint64_t last_id; /* links with a higher id are new since the start and left out */
	struct buffer order; /* indexes of objects, size_t each; empty: as they were listed */
	struct sorting sorting; /* of `order` */
	size_t next; /* index of the object that is next */
	bool has_begun, is_walking, is_unordered, is_sorting, has_all_rows;
	_Alignas(max_align_t) unsigned char state[]; /* the topic's, zero at first */
};

/*
 * The answer to this request; nothing is built yet. The request and its clauses are copied.
 * Returns NULL when out of memory.
 */
struct show_stream *show_stream_new(const struct show_request *request);

/* At any time; NULL is allowed. */
void show_stream_free(struct show_stream *show);

/*
 * Append the next slice to `out`; it may be empty. Returns true when the answer is complete,
 * its CommandComplete included, or when memory ran out (out->failed). The caller frees the
 * stream.
 */
bool show_stream_continue(struct show_stream *show, struct buffer *out);

/* Append all that is left of the answer, however long that takes. */
void show_stream_finish(struct show_stream *show, struct buffer *out);

/* Bytes that the stream keeps in memory for later slices. NULL has none. */
size_t show_stream_held(const struct show_stream *show);

/*
 * For topics: there are rows about this object; its handle is kept at `handle`. The topic gets
 * `kind` back with it. Lack of memory is reported by show_stream_continue().
 */
void show_stream_add_object(
	struct show_stream *show, uint64_t *handle, const void *object, unsigned kind);

#endif
