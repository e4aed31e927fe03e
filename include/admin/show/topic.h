/* SPDX-License-Identifier: ISC */
/*
 * What SHOW can show. A topic has a name, columns, and a source of rows. A topic with few rows
 * has one function that adds all of them; a topic that may have many rows first lists the
 * objects that it has rows about and then adds the rows of one object after the other
 * (admin/show/show_stream).
 *
 * Columns, their order and their types are an interface: programs read them by position.
 */
#ifndef PGUSHER_ADMIN_SHOW_TOPIC_H
#define PGUSHER_ADMIN_SHOW_TOPIC_H

#include "admin/show/result.h"
#include "model/link.h"
#include "model/registry.h"

struct show_stream;

/* Which users may give a command or see a topic: all console users, or admin_users only. */
enum right { RIGHT_STATS, RIGHT_ADMIN };

/* One SHOW command. */
struct show_request {
	struct registry *registry;
	struct client_link *client; /* the console that asks */
	size_t text_length; /* of the command */
	const struct topic *topic;
	struct result_options options;
};

/* The functions of a topic with many rows. */
struct topic_walk {
	void (*begin)(struct show_stream *show); /* prepare show->state; may be NULL */
	/*
	 * List every object that there are rows about, with show_stream_add_object(). Rows
	 * about things without a handle are added to the result at once.
	 */
	void (*list)(struct show_stream *show);
	/*
	 * For topics about links: instead of calling `list` when there are many links,
	 * show_stream asks for the position of each link's row among the others, ascending; 0:
	 * the link has no row. NULL: there are never so many objects.
	 */
	uint32_t (*place)(const struct link *link);
	/*
	 * Add the rows of one object, which still exists; there may be none. `kind` is the
	 * value that it was listed with.
	 */
	void (*add_rows)(struct show_stream *show, void *object, unsigned kind);
	size_t state_size; /* of show->state, which these functions share */
};

struct topic {
	const char *name; /* upper case */
	const struct column *columns;
	unsigned column_count; /* 0: no result set */
	/* Add all rows, which are few; a topic without columns sends a notice instead. */
	void (*fill)(struct result *result, const struct show_request *request);
	enum right right;
	const struct topic_walk *walk; /* instead of `fill` */
	/* The topic as PgBouncer 1.25.2 has it; NULL: as this one. */
	const struct topic *in_1_25;
};

/* A topic with an array of columns. */
#define TOPIC(name, columns, fill)                                                             \
	{                                                                                      \
		name, columns, sizeof(columns) / sizeof((columns)[0]), fill, RIGHT_STATS,      \
			NULL, NULL                                                             \
	}

/* The same for a topic with many rows. */
#define WALKED_TOPIC(name, columns, walk)                                                      \
	{                                                                                      \
		name, columns, sizeof(columns) / sizeof((columns)[0]), NULL, RIGHT_STATS,      \
			walk, NULL                                                             \
	}

/* The same for a topic that has other columns in PgBouncer 1.25.2. */
#define WALKED_TOPIC_CHANGED(name, columns, walk, older)                                       \
	{                                                                                      \
		name, columns, sizeof(columns) / sizeof((columns)[0]), NULL, RIGHT_STATS,      \
			walk, older                                                            \
	}

/* One variable for each row of topics.def, defined in a file show_*.c. */
#define SHOW(variable, group, purpose) extern const struct topic variable;
#include "admin/show/topics.def"
#undef SHOW

#endif
