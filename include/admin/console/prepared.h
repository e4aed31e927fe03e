/* SPDX-License-Identifier: ISC */
/*
 * The statements and portals of one console. A statement is the text of a command that was
 * checked, a portal one run of it with what has not been sent yet. Both are bounded in number,
 * statements in the bytes of their texts too.
 *
 * A portal keeps its text, whatever becomes of the statement it was made from.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_PREPARED_H
#define PGUSHER_ADMIN_CONSOLE_PREPARED_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

#include "admin/show/telling.h"
#include "base/buffer.h"

struct topic;

enum {
	PREPARED_STATEMENTS = 1024,
	PREPARED_PORTALS = 64,
	PREPARED_NAME_SIZE = 256, /* with its NUL */
	PREPARED_TEXT_MAX = 1024 * 1024, /* of all statements and portals together */
};

/* A text, shared by a statement and the portals made from it. */
struct console_query {
	unsigned holders;
	const struct topic *topic; /* NULL: it returns no rows */
	size_t length;
	char text[];
};

struct console_statement {
	LIST_ENTRY(console_statement) entry;
	struct console_query *query;
	char name[]; /* "" is the unnamed one */
};

struct console_portal {
	LIST_ENTRY(console_portal) entry;
	struct console_query *query;
	uint64_t binary; /* see struct result_wish */
	bool has_run;
	struct buffer answer; /* of the run, as far as it was built */
	size_t sent; /* of it */
	struct telling *telling; /* owned: builds the rest; NULL: there is none */
	char name[];
};

struct prepared {
	LIST_HEAD(, console_statement) statements;
	LIST_HEAD(, console_portal) portals;
	unsigned statement_count, portal_count;
	size_t text_bytes;
};

/* By name; NULL: there is none. */
struct console_statement *prepared_find_statement(
	const struct prepared *prepared, const char *name);
struct console_portal *prepared_find_portal(const struct prepared *prepared, const char *name);

/* A new one of a name that is not taken. NULL: no memory, or one of the bounds is reached. */
struct console_statement *prepared_add_statement(struct prepared *prepared, const char *name,
	const char *text, const struct topic *topic);
struct console_portal *prepared_add_portal(
	struct prepared *prepared, const char *name, struct console_query *query);

/* NULL is none. */
void prepared_drop_statement(struct prepared *prepared, struct console_statement *statement);
void prepared_drop_portal(struct prepared *prepared, struct console_portal *portal);

void prepared_drop_portals(struct prepared *prepared);
void prepared_drop_all(struct prepared *prepared);

/* Bytes of answers that portals hold, or that of which they will be made. */
size_t prepared_held(const struct prepared *prepared);

#endif
