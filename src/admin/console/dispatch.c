/* SPDX-License-Identifier: ISC */
#include "admin/console/dispatch.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "admin/console/commands.h"
#include "admin/console/driver_answer.h"
#include "admin/console/hints.h"
#include "admin/console/reply.h"
#include "admin/console/topics.h"
#include "admin/show/clauses.h"
#include "base/text.h"
#include "wire/writer.h"

/* Bytes of a command that an error repeats. */
enum { QUOTED_COMMAND_MAX = 900 };

/* A text that was parsed. */
struct command_request {
	struct command_words words;
	struct clauses clauses;
	const struct command *command; /* NULL: SQL of a driver */
	unsigned statements; /* of a driver */
	struct driver_statement first; /* of them */
};

static enum command_end refuse(const struct command_call *call, const char *text)
{
	reply_error(call->out, call->client, "%s", text);
	return COMMAND_DONE;
}

static void refuse_as_invalid(const struct command_call *call, enum grammar grammar,
	const struct command_words *words)
{
	const size_t length = text_utf8_cut(call->text, strlen(call->text), QUOTED_COMMAND_MAX);
	char text[QUOTED_COMMAND_MAX + 64], hint[HINT_SIZE];
	const bool has_words = grammar == GRAMMAR_COMMAND || grammar == GRAMMAR_SHOW;

	snprintf(text, sizeof(text), "invalid command '%.*s', use SHOW HELP;", (int)length,
		call->text);
	reply_error_as(call->out, call->client, CONSOLE_SQLSTATE, text,
		has_words && hints_for_command(words, hint) ? hint : NULL);
}

/* --- parsing ------------------------------------------------------------------------------ */

static const struct command *find_command(const char *word)
{
	for (const struct command *command = commands; command->word; command++) {
		if (strcasecmp(command->word, word) == 0)
			return command;
	}
	return NULL;
}

/* Does the command take this argument, or none? The value is checked later. */
static bool takes_argument(
	const struct command *command, enum grammar grammar, const struct command_words *words)
{
	if ((grammar == GRAMMAR_SET) != (command->argument == ARGUMENT_ASSIGNMENT))
		return false;
	switch (command->argument) {
	case ARGUMENT_NONE:
		return !words->has_argument;
	case ARGUMENT_TOPIC:
		return words->has_argument;
	case ARGUMENT_MODE:
		return !words->has_argument || commands_has_mode(words->argument);
	case ARGUMENT_ASSIGNMENT:
	case ARGUMENT_CLIENT:
	case ARGUMENT_DATABASE:
	case ARGUMENT_OPTIONAL_DATABASE:
		break;
	}
	return true;
}

/* Find the command, and the topic of SHOW. Returns false if the text is none. */
static bool find_request(
	struct command_call *call, enum grammar grammar, struct command_request *request)
{
	if (grammar == GRAMMAR_INVALID || grammar == GRAMMAR_TOO_LONG)
		return false;
	request->command = find_command(request->words.word);
	if (!request->command || !takes_argument(request->command, grammar, &request->words))
		return false;
	if (request->command->argument != ARGUMENT_TOPIC)
		return true;
	call->topic = topics_find(
		request->words.argument, call->registry->process->settings->compat_version);
	return call->topic;
}

/* Parse the clauses of SHOW. Returns false after appending the error. */
static bool parse_clauses(struct command_call *call, struct command_request *request)
{
	struct clause_fault fault;
	char text[sizeof(fault.text) + 32];

	if (!call->topic || !request->words.clauses)
		return true;
	if (clauses_parse(request->words.clauses, call->topic->columns,
		    call->topic->column_count, &request->clauses, &fault)) {
		call->options.clauses = &request->clauses;
		return true;
	}
	snprintf(text, sizeof(text), "SHOW %s: %s", call->topic->name, fault.text);
	reply_error_as(call->out, call->client, fault.sqlstate, text, NULL);
	return false;
}

/* Parse the text. Returns false after appending the error. */
static bool parse_request(struct command_call *call, struct command_request *request)
{
	const enum grammar grammar = grammar_parse(call->text, &request->words);

	call->words = &request->words;
	request->statements = 0;
	request->first.action = DRIVER_NOTHING;
	request->first.column_count = 0;
	if (find_request(call, grammar, request))
		return parse_clauses(call, request);
	request->command = NULL;
	request->statements = driver_sql_count(call->text, &request->first);
	if (request->statements > 0)
		return true;
	if (grammar == GRAMMAR_TOO_LONG)
		refuse(call, "bad arguments");
	else
		refuse_as_invalid(call, grammar, &request->words);
	return false;
}

/* The columns of the answer; 0: it has no rows. They live as long as the request. */
static const struct column *columns_of(
	const struct command_call *call, const struct command_request *request, unsigned *count)
{
	*count = call->topic ? call->topic->column_count : request->first.column_count;
	return call->topic ? call->topic->columns : request->first.columns;
}

/* --- databases ---------------------------------------------------------------------------- */

static bool names_database(const struct command *command)
{
	return command->argument == ARGUMENT_DATABASE ||
		command->argument == ARGUMENT_OPTIONAL_DATABASE;
}

/* Find or create the database that the argument names. */
static struct database *open_database(const struct command *command, struct command_call *call)
{
	const char *name = call->words->argument;
	struct database *database;
	struct registry *home;
	bool made;

	if (!command->makes_database)
		return registry_find_database(call->registry, name);
	home = directory_home_of(call->registry->process, name);
	database = registry_open_database(home ? home : call->registry, name, &made);
	if (database && made)
		link_log(&call->client->link, LEVEL_LOG, "registered new auto-database: %s",
			name);
	return database;
}

static enum command_end run_on_database(
	const struct command *command, struct command_call *call)
{
	const struct command_words *words = call->words;

	if (command->argument == ARGUMENT_DATABASE && !words->has_argument)
		return refuse(call, "a database is required");
	if (command->refused_while_paused &&
		call->registry->process->operation != OPERATION_RUNNING)
		return refuse(call, "already suspended/paused");
	if (words->has_argument) {
		call->database = open_database(command, call);
		if (!call->database) {
			reply_error(call->out, call->client, "no such database: %s",
				words->argument);
			return COMMAND_DONE;
		}
		if (call->database->console && command->verb) {
			reply_error(call->out, call->client, "cannot %s admin db: pgbouncer",
				command->verb);
			return COMMAND_DONE;
		}
	}
	return command->run(call);
}

/* --- running ------------------------------------------------------------------------------ */

static struct command_call call_of(
	struct client_link *client, const char *text, struct buffer *out)
{
	return (struct command_call){
		.registry = link_registry(&client->link),
		.client = client,
		.text = text,
		.out = out,
	};
}

bool dispatch_check(struct client_link *client, const char *text, struct answer_shape *shape,
	struct buffer *out)
{
	struct command_call call = call_of(client, text, out);
	struct command_request request;

	if (!parse_request(&call, &request))
		return false;
	if (request.statements > 1) {
		reply_error_as(out, client, "42601",
			"cannot insert multiple commands into a prepared statement", NULL);
		return false;
	}
	columns_of(&call, &request, &shape->column_count);
	shape->end_tag = request.first.action == DRIVER_SELECT ? "SELECT 0" : "SHOW";
	return true;
}

void dispatch_describe(
	struct client_link *client, const char *text, uint64_t binary, struct buffer *out)
{
	struct command_call call = call_of(client, text, out);
	struct command_request request;
	const struct column *columns;
	unsigned count = 0;

	if (parse_request(&call, &request)) {
		columns = columns_of(&call, &request, &count);
		if (count > 0)
			result_describe(out, columns, count, binary);
		else
			writer_message(out, PQ_NO_DATA, NULL, 0);
	}
}

enum command_end dispatch_run(struct client_link *client, const char *text,
	const struct result_options *options, struct buffer *out, struct show_stream **show)
{
	struct command_call call = call_of(client, text, out);
	const struct command *command;
	struct command_request request;
	enum command_end end;

	*show = NULL;
	if (options)
		call.options = *options;
	if (!parse_request(&call, &request))
		return COMMAND_DONE;
	command = request.command;
	if (!command) {
		driver_answer_write(client, text, options, out);
		return COMMAND_DONE;
	}
	if (command->right == RIGHT_ADMIN && !client->admin)
		return refuse(&call, "admin access needed");
	end = names_database(command) ? run_on_database(command, &call) : command->run(&call);
	*show = call.show;
	return end;
}
