/* SPDX-License-Identifier: ISC */
/*
 * The prepared statements and portals of one console. A statement is the text of a command that
 * was checked; a portal is one run of it with the part of the answer that was not sent yet. The
 * number of both is limited, and so are the bytes of their texts.
 *
 * A portal keeps its text when its statement is closed.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_PREPARED_H
#define PGUSHER_ADMIN_CONSOLE_PREPARED_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

#include "admin/show/show_stream.h"
#include "base/buffer.h"

enum {
	PREPARED_STATEMENTS = 1024,
	PREPARED_PORTALS = 64,
	PREPARED_NAME_SIZE = 256, /* with its NUL */
	PREPARED_TEXT_MAX = 1024 * 1024, /* bytes of all statements and portals together */
};

/* What a command returns, apart from the names and types of its columns. */
struct answer_shape {
	unsigned column_count; /* 0: no rows */
	const char *end_tag; /* answers an Execute when all rows have been sent */
};

/* A text, shared by a statement and the portals made from it. */
struct console_query {
	unsigned references;
	struct answer_shape shape;
	size_t length;
	char text[];
};

struct console_statement {
	LIST_ENTRY(console_statement) entry;
	struct console_query *query;
	char name[]; /* "": the unnamed statement */
};

struct console_portal {
	LIST_ENTRY(console_portal) entry;
	struct console_query *query;
	uint64_t binary; /* see struct result_options */
	bool has_run;
	struct buffer answer; /* as far as it was built */
	size_t sent; /* bytes of `answer` */
	struct show_stream *show; /* owned: builds the rest; NULL: the answer is complete */
	char name[]; /* "": the unnamed portal */
};

struct prepared {
	LIST_HEAD(, console_statement) statements;
	LIST_HEAD(, console_portal) portals;
	unsigned statement_count, portal_count;
	size_t text_bytes;
};

/* Find a statement or portal by name; NULL: there is none. */
struct console_statement *prepared_find_statement(
	const struct prepared *prepared, const char *name);
struct console_portal *prepared_find_portal(const struct prepared *prepared, const char *name);

/*
 * Add a statement or portal under a name that is not in use. Texts are copied. Returns NULL
 * when out of memory or when a limit is reached.
 */
struct console_statement *prepared_add_statement(struct prepared *prepared, const char *name,
	const char *text, const struct answer_shape *shape);
struct console_portal *prepared_add_portal(
	struct prepared *prepared, const char *name, struct console_query *query);

/* Remove and free one; NULL is allowed. */
void prepared_drop_statement(struct prepared *prepared, struct console_statement *statement);
void prepared_drop_portal(struct prepared *prepared, struct console_portal *portal);

/* Remove and free all portals, all statements, or both. */
void prepared_drop_portals(struct prepared *prepared);
void prepared_drop_statements(struct prepared *prepared);
void prepared_drop_all(struct prepared *prepared);

/* Bytes of memory that the answers of portals take. */
size_t prepared_held(const struct prepared *prepared);

#endif
