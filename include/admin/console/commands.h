/* SPDX-License-Identifier: ISC */
/*
 * The commands of the console: one command is one row of the table in commands.c and one
 * function. admin/console/dispatch finds the row, checks the argument and the right to give the command.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_COMMANDS_H
#define PGUSHER_ADMIN_CONSOLE_COMMANDS_H

#include "admin/console/grammar.h"
#include "admin/show/result.h"
#include "base/buffer.h"
#include "model/registry.h"

enum command_end {
	COMMAND_DONE, /* the answer is whole */
	COMMAND_PASSES, /* the same, and its rows go with the descriptors that they name */
	COMMAND_WAITS, /* admin/console/waits will answer */
	COMMAND_GOES_ON, /* the answer has begun, and call->telling has the rest */
	COMMAND_LAST, /* no answer: the process ends */
};

/* One command being run. */
struct command_call {
	struct registry *registry;
	struct client_link *client; /* who asks; the command may close it */
	const char *text; /* as it came */
	const struct command_words *words;
	const struct topic *topic; /* of SHOW */
	struct result_wish wish; /* for its rows */
	struct database *database; /* that the argument names; NULL: all */
	struct buffer *out;
	struct telling *
		telling; /* set by SHOW whose rows are too many for one turn; whoever runs it owns it */
};

enum argument_kind {
	ARGUMENT_NONE,
	ARGUMENT_TOPIC, /* what SHOW shows: the command judges it */
	ARGUMENT_MODE, /* of a shutdown */
	ARGUMENT_CLIENT, /* an id, judged by the command */
	ARGUMENT_ASSIGNMENT, /* key and value */
	ARGUMENT_DATABASE, /* required */
	ARGUMENT_OPTIONAL_DATABASE,
};

enum right { RIGHT_STATS, RIGHT_ADMIN };

/* A line of SHOW HELP, and what SHOW COMMANDS says of it. */
struct command_help {
	const char *usage, *purpose;
	bool is_ours; /* PgBouncer does not have it */
};

enum { COMMAND_HELP_LINES = 2 };

struct command {
	const char *word;
	enum argument_kind argument;
	enum right right;
	bool makes_database; /* one that does not exist, from the `*` entry */
	bool refused_while_paused;
	const char *verb; /* for `cannot VERB admin db`; NULL: it can */
	enum command_end (*run)(struct command_call *call);
	struct command_help help[COMMAND_HELP_LINES]; /* as far as they have a usage */
};

/* The table, in the order of SHOW HELP; ends with a row without a word. */
extern const struct command commands[];

/* Is this the name of a way to shut down? */
bool commands_know_mode(const char *word);

#endif
