/* SPDX-License-Identifier: ISC */
#include "admin/console/dispatch.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "admin/console/commands.h"
#include "admin/console/reply.h"
#include "admin/console/topics.h"
#include "admin/show/clauses.h"
#include "base/text.h"

/* Bytes of a command that an error repeats. */
enum { QUOTED_COMMAND_MAX = 900 };

/* A text that was parsed. */
struct command_request {
	struct command_words words;
	struct clauses clauses;
	const struct command *command;
};

static enum command_end refuse(const struct command_call *call, const char *text)
{
	reply_error(call->out, call->client, "%s", text);
	return COMMAND_DONE;
}

static bool refuse_as_invalid(const struct command_call *call)
{
	const size_t length = text_utf8_cut(call->text, strlen(call->text), QUOTED_COMMAND_MAX);

	reply_error(call->out, call->client, "invalid command '%.*s', use SHOW HELP;",
		(int)length, call->text);
	return false;
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

/* Find the topic of SHOW and parse its clauses. Returns false after appending the error. */
static bool parse_topic(struct command_call *call, struct command_request *request)
{
	struct clause_fault fault;

	call->topic = topics_find(request->words.argument);
	if (!call->topic)
		return refuse_as_invalid(call);
	if (!request->words.clauses)
		return true;
	if (!clauses_parse(request->words.clauses, call->topic->columns,
		    call->topic->column_count, &request->clauses, &fault)) {
		char text[sizeof(fault.text) + 32];

		snprintf(text, sizeof(text), "SHOW %s: %s", call->topic->name, fault.text);
		reply_error_as(call->out, call->client, fault.sqlstate, text);
		return false;
	}
	call->options.clauses = &request->clauses;
	return true;
}

/* Parse the text. Returns false after appending the error. */
static bool parse_request(struct command_call *call, struct command_request *request)
{
	const enum grammar grammar = grammar_parse(call->text, &request->words);

	call->words = &request->words;
	if (grammar == GRAMMAR_TOO_LONG) {
		refuse(call, "bad arguments");
		return false;
	}
	if (grammar == GRAMMAR_INVALID)
		return refuse_as_invalid(call);
	request->command = find_command(request->words.word);
	if (!request->command || !takes_argument(request->command, grammar, &request->words))
		return refuse_as_invalid(call);
	return request->command->argument != ARGUMENT_TOPIC || parse_topic(call, request);
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
	bool made;

	if (!command->makes_database)
		return registry_find_database(call->registry, name);
	database = registry_open_database(call->registry, name, &made);
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

bool dispatch_check(struct client_link *client, const char *text, const struct topic **topic,
	struct buffer *out)
{
	struct command_call call = call_of(client, text, out);
	struct command_request request;

	if (!parse_request(&call, &request))
		return false;
	*topic = call.topic;
	return true;
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
	if (command->right == RIGHT_ADMIN && !client->admin)
		return refuse(&call, "admin access needed");
	end = names_database(command) ? run_on_database(command, &call) : command->run(&call);
	*show = call.show;
	return end;
}
