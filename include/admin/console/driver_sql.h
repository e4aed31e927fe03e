/* SPDX-License-Identifier: ISC */
/*
 * The SQL that drivers, pools and tools send of their own accord: when they connect, around each
 * command, to see whether the connection still works. Pure: recognizes these statements, and no
 * others; admin/console/driver_answer answers them. Comments may be anywhere, as in SQL.
 *
 *	statement  :=  ( 'begin' | 'start transaction' ) mode* | 'commit' | 'end'
 *	             | 'rollback' | 'abort'
 *	             | 'set' ... | 'reset' ( name | 'all' ) | 'show' name
 *	             | 'select' item ( ',' item )*
 *	             | 'deallocate' ( name | 'all' ) | 'discard all' | 'close all' | 'unlisten *'
 *	item       :=  ( literal | function ) ( 'as'? name )?
 *
 * Names of SET, RESET and SHOW are those of admin/show/show_fakes.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_DRIVER_SQL_H
#define PGUSHER_ADMIN_CONSOLE_DRIVER_SQL_H

#include "admin/show/topic.h"

enum {
	DRIVER_TEXT_MAX = 4096, /* longer texts are not looked at */
	DRIVER_SELECT_ITEMS = 8, /* of one SELECT */
	DRIVER_NAME_SIZE = 64, /* of a name or a literal, with its NUL */
};

enum driver_action {
	DRIVER_NOTHING, /* only the tag is sent */
	DRIVER_EMPTY, /* an empty query */
	DRIVER_BEGIN,
	DRIVER_END, /* COMMIT and ROLLBACK: nothing is undone */
	DRIVER_SET,
	DRIVER_SHOW,
	DRIVER_SELECT,
	DRIVER_DEALLOCATE,
	DRIVER_DEALLOCATE_ALL,
};

/* Where the value of a column of SELECT comes from. */
enum driver_value {
	DRIVER_VALUE_TEXT, /* `text` */
	DRIVER_VALUE_PARAMETER, /* `parameter` */
	DRIVER_VALUE_VERSION,
	DRIVER_VALUE_DATABASE,
	DRIVER_VALUE_USER,
};

/* One statement. Points into itself: pass its address, do not copy it. */
struct driver_statement {
	enum driver_action action;
	const char *tag; /* of CommandComplete; NULL: SHOW and SELECT have their own */
	const struct topic *shown; /* of SHOW */
	char name[DRIVER_NAME_SIZE]; /* of DEALLOCATE */
	unsigned column_count; /* of SHOW and SELECT */
	struct column columns[DRIVER_SELECT_ITEMS];
	struct driver_cell { /* of SELECT */
		enum driver_value value;
		const struct topic *parameter;
		char label[DRIVER_NAME_SIZE], text[DRIVER_NAME_SIZE];
	} cells[DRIVER_SELECT_ITEMS];
};

/*
 * Parse the statement at the front of the text. Returns the text behind it and its semicolon,
 * which is empty after the last statement; NULL if it is no statement of this kind. White space
 * and comments alone are an empty statement.
 */
const char *driver_sql_parse(const char *text, struct driver_statement *out);

/*
 * The number of statements of the text, and the first of them; 0 if one of them is of another
 * kind, or the text is longer than DRIVER_TEXT_MAX.
 */
unsigned driver_sql_count(const char *text, struct driver_statement *first);

#endif
