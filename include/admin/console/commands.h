/* SPDX-License-Identifier: ISC */
/*
 * The commands of the console: a command is one row of the table in commands.c and one
 * function. admin/console/dispatch finds the row, and checks the argument and the client's
 * right to give the command, before it calls the function.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_COMMANDS_H
#define PGUSHER_ADMIN_CONSOLE_COMMANDS_H

#include "admin/console/grammar.h"
#include "admin/show/topic.h"
#include "base/buffer.h"
#include "model/registry.h"

/* How far the answer to a command is. */
enum command_end {
	COMMAND_DONE, /* complete */
	COMMAND_PASSES_FDS, /* complete; each row is sent with the descriptor that it names */
	COMMAND_WAITS, /* not begun: admin/console/waits sends it later */
	COMMAND_CONTINUES, /* begun: call->show builds the rest */
	COMMAND_EXITS, /* there is none: the process ends */
};

/* One run of a command. */
struct command_call {
	struct registry *registry;
	struct client_link *client; /* the console; the command may close it */
	const char *text; /* as received */
	const struct command_words *words;
	const struct topic *topic; /* of SHOW */
	struct result_options options; /* of its result set */
	struct database *database; /* the one that the argument names; NULL: all databases */
	struct buffer *out;
	struct show_stream *show; /* set by SHOW with COMMAND_CONTINUES; the caller frees it */
};

enum argument_kind {
	ARGUMENT_NONE,
	ARGUMENT_TOPIC, /* of SHOW; checked by the dispatcher */
	ARGUMENT_MODE, /* of SHUTDOWN */
	ARGUMENT_CLIENT, /* an id, checked by the command */
	ARGUMENT_ASSIGNMENT, /* key and value */
	ARGUMENT_DATABASE, /* required */
	ARGUMENT_OPTIONAL_DATABASE,
};

/* A line of SHOW HELP and a row of SHOW COMMANDS. */
struct command_help {
	const char *usage, *purpose;
	bool is_ours; /* PgBouncer does not have it */
};

enum { COMMAND_HELP_LINES = 2 };

struct command {
	const char *word;
	enum argument_kind argument;
	enum right right;
	bool makes_database; /* creates a missing database from the `*` entry */
	bool refused_while_paused;
	const char
		*verb; /* for `cannot VERB admin db`; NULL: the console's database is allowed */
	enum command_end (*run)(struct command_call *call);
	struct command_help help[COMMAND_HELP_LINES]; /* ends with a line without a usage */
};

/* The table, in the order of SHOW HELP; ends with a row without a word. */
extern const struct command commands[];

/* Is this the name of a mode of SHUTDOWN? */
bool commands_has_mode(const char *word);

/* The mode of SHUTDOWN most similar to this word; NULL: none is similar. */
const char *commands_nearest_mode(const char *word);

#endif
