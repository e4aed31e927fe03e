/* SPDX-License-Identifier: ISC */
/*
 * SHOW HELP and SHOW COMMANDS, made from the tables of topics and commands: a notice to be
 * read, and the same as rows for programs.
 */
#include <stdio.h>

#include "admin/console/commands.h"
#include "admin/console/reply.h"
#include "admin/console/topics.h"

/* Called for each line of help. */
typedef void help_line(void *context, const struct command_help *help, enum right right);

static void each_command(help_line *line, void *context)
{
	for (const struct command *command = commands; command->word; command++) {
		for (unsigned i = 0; i < COMMAND_HELP_LINES && command->help[i].usage; i++)
			line(context, &command->help[i], command->right);
	}
}

static void each_topic(help_line *line, void *context)
{
	const struct topic *topic;
	const char *purpose;
	char usage[48];

	for (unsigned i = 0; topics_get(i, &topic, &purpose); i++) {
		snprintf(usage, sizeof(usage), "SHOW %s", topic->name);
		line(context, &(struct command_help){usage, purpose, false}, topic->right);
	}
}

/* --- HELP --------------------------------------------------------------------------------- */

static void add_usage(void *context, const struct command_help *help, enum right right)
{
	(void)right;
	if (!help->is_ours)
		buffer_printf(context, "\n\t%s", help->usage);
}

static void add_our_usage(void *context, const struct command_help *help, enum right right)
{
	(void)right;
	if (help->is_ours)
		buffer_printf(context, "\n\t%s", help->usage);
}

static void add_purpose(void *context, const struct command_help *help, enum right right)
{
	(void)right;
	buffer_printf(context, "\n\t%s: %s", help->usage, help->purpose);
}

/* First the lines that PgBouncer has, then ours, then the purpose of each topic and command. */
static void fill_help(struct result *result, const struct show_request *request)
{
	struct buffer detail = {0};

	(void)request;
	topics_help(&detail, false);
	each_command(add_usage, &detail);
	topics_help(&detail, true);
	each_command(add_our_usage, &detail);
	each_topic(add_purpose, &detail);
	each_command(add_purpose, &detail);
	buffer_append(&detail, "", 1);
	if (detail.failed)
		result->out->failed = true;
	else
		reply_notice(result->out, "Console usage", (const char *)detail.data);
	buffer_free(&detail);
}

const struct topic show_help = {.name = "HELP", .fill = fill_help};

/* --- COMMANDS ----------------------------------------------------------------------------- */

static const struct column columns[] = {
	{"command", COLUMN_TEXT},
	{"rights", COLUMN_TEXT},
	{"purpose", COLUMN_TEXT},
};

static void add_row(void *context, const struct command_help *help, enum right right)
{
	struct result *result = context;

	result_begin_row(result);
	result_text(result, help->usage);
	result_text(result, right == RIGHT_ADMIN ? "admin" : "stats");
	result_text(result, help->purpose);
	result_end_row(result);
}

static void fill_commands(struct result *result, const struct show_request *request)
{
	(void)request;
	each_topic(add_row, result);
	each_command(add_row, result);
}

const struct topic show_commands = TOPIC("COMMANDS", columns, fill_commands);
