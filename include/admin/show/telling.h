/* SPDX-License-Identifier: ISC */
/*
 * The answer to a SHOW, built a slice at a time, so that traffic goes on however many rows there
 * are. This is the one place that knows of slices: topics say what there are rows about, and then
 * tell of one thing after the other.
 *
 * What there are rows about is noted first, in the order in which they are told: of each thing its
 * handle, so that it may go meanwhile, move to another list, or change; one that has gone is left
 * out, and none is told twice. Rows are of the moment in which they are built. Connections are
 * noted list by list if they are few; else one after the other as they came, which takes some turns,
 * and then put in the order of their lists.
 */
#ifndef PGUSHER_ADMIN_SHOW_TELLING_H
#define PGUSHER_ADMIN_SHOW_TELLING_H

#include "admin/console/commands.h"
#include "admin/show/clauses.h"
#include "admin/show/result.h"
#include "model/link_walk.h"

struct telling;

/* What topics with many rows are made of; see admin/console/topics. */
struct topic_walk {
	/* Note everything there is to tell of; rows about what has no handle are added at once. */
	void (*note)(struct telling *telling);
	/*
	 * For topics about links: what is to be done instead of `note` if they are many, and where
	 * the row of a link stands, ascending; 0: it has none. NULL: there are never so many.
	 */
	void (*start)(struct telling *telling);
	uint32_t (*place)(const struct link *link);
	/* Add what rows there are about one thing, which lives; `kind` is what was noted with it. */
	void (*tell)(struct telling *telling, void *thing, unsigned kind);
	size_t memory_size; /* of what the two share */
};

struct telling {
	struct registry *registry;
	struct client_link *client; /* who asks, and lives as long as this */
	size_t text_length; /* of the command */
	const struct topic *topic;
	struct clauses clauses; /* the wish points to them, if there are any */
	struct result result;
	struct buffer notes; /* struct note each */
	struct link_walk walk; /* valid while it is walking */
	uint64_t last_id; /* of the links that are told of */
	struct buffer order; /* of the notes, size_t each; empty: as they stand */
	struct sorting sorting; /* of the order */
	size_t told; /* of the notes */
	bool has_begun, is_walking, is_unordered, is_sorting, has_told_all;
	_Alignas(max_align_t) unsigned char memory[]; /* the topic's, zero at first */
};

/* The answer to this call, about to begin. NULL: no memory. */
struct telling *telling_new(const struct command_call *call);

/* NULL is none. */
void telling_free(struct telling *telling);

/*
 * Append the next slice, which may be nothing, to `out`. True: that was all, tag included, or
 * memory ran out (out->failed).
 */
bool telling_go_on(struct telling *telling, struct buffer *out);

/* The same without an end to the slice. */
void telling_finish(struct telling *telling, struct buffer *out);

/* Bytes that it keeps for later. */
size_t telling_held(const struct telling *telling);

/* For topics: there is something to tell of this thing, whose handle is kept at `handle`. */
void telling_note(struct telling *telling, uint64_t *handle, const void *thing, unsigned kind);

#endif
