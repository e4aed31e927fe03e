/* SPDX-License-Identifier: ISC */
/*
 * The grammar of console commands. Pure: a text in, its words out.
 *
 *	command  :=  ws* word ( ws+ word )? ws* ( ';' ws* )?
 *	set      :=  ws* 'set' ws+ word ws* ( '=' | 'to' ) ws* value ws* ( ';' ws* )?
 *	show     :=  ws* ( 'show' | 'select' ) ws+ word ws+ ( 'where' | 'order' | 'limit' ) ...
 *	word     :=  one or more of [0-9A-Za-z_]  |  '"' any-chars '"'   ("" is one quote)
 *	value    :=  word  |  '\'' any-chars '\''                        ('' is one quote)
 *
 * What the words mean is for admin/console/commands, how a show goes on for admin/show/clauses.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_GRAMMAR_H
#define PGUSHER_ADMIN_CONSOLE_GRAMMAR_H

#include <stdbool.h>

/* A word of this many bytes, after its quotes are removed, is one too long. */
enum { COMMAND_WORD_SIZE = 16, COMMAND_ARGUMENT_SIZE = 64, COMMAND_VALUE_SIZE = 256 };

enum grammar {
	GRAMMAR_COMMAND, /* word and perhaps argument */
	GRAMMAR_SET, /* argument is the key; and value */
	GRAMMAR_SHOW, /* argument is the topic; and clauses */
	GRAMMAR_TOO_LONG, /* one of these, but a word does not fit */
	GRAMMAR_INVALID,
};

/* The words of a command, without their quotes and in the case they came in. */
struct command_words {
	char word[COMMAND_WORD_SIZE]; /* `set` for GRAMMAR_SET */
	char argument[COMMAND_ARGUMENT_SIZE];
	char value[COMMAND_VALUE_SIZE];
	const char *clauses; /* in the text, from the keyword on; NULL but for GRAMMAR_SHOW */
	bool has_argument;
};

/* Take a command apart. They are good for the first three answers only. */
enum grammar grammar_parse(const char *text, struct command_words *out);

#endif
