/* SPDX-License-Identifier: ISC */
/*
 * The grammar of console commands. Pure: splits a text into words.
 *
 *	command  :=  ws* word ( ws+ word )? ws* ( ';' ws* )?
 *	set      :=  ws* 'set' ws+ word ws* ( '=' | 'to' ) ws* value ws* ( ';' ws* )?
 *	show     :=  ws* ( 'show' | 'select' ) ws+ word ws+ ( 'where' | 'order' | 'limit' ) ...
 *	word     :=  one or more of [0-9A-Za-z_]  |  '"' any-chars '"'   ("" is one quote)
 *	value    :=  word  |  '\'' any-chars '\''                        ('' is one quote)
 *
 * admin/console/commands gives the words their meaning; admin/show/clauses parses the clauses
 * of a SHOW.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_GRAMMAR_H
#define PGUSHER_ADMIN_CONSOLE_GRAMMAR_H

#include <stdbool.h>

/* Room for a word without its quotes, NUL included; a word that does not fit is too long. */
enum { COMMAND_WORD_SIZE = 16, COMMAND_ARGUMENT_SIZE = 64, COMMAND_VALUE_SIZE = 256 };

enum grammar {
	GRAMMAR_COMMAND, /* word and perhaps argument */
	GRAMMAR_SET, /* argument is the key; and value */
	GRAMMAR_SHOW, /* argument is the topic; and clauses */
	GRAMMAR_TOO_LONG, /* one of these, but a word does not fit */
	GRAMMAR_INVALID,
};

/* The words of a command, without their quotes, in the case that the client used. */
struct command_words {
	char word[COMMAND_WORD_SIZE]; /* `set` for GRAMMAR_SET */
	char argument[COMMAND_ARGUMENT_SIZE];
	char value[COMMAND_VALUE_SIZE];
	const char *clauses; /* GRAMMAR_SHOW only: points into the text, at the keyword */
	bool has_argument;
};

/* Parse a command. `out` is valid for the first three results only. */
enum grammar grammar_parse(const char *text, struct command_words *out);

#endif
