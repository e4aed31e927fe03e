/* SPDX-License-Identifier: ISC */
/* SHOW HELP: no rows, but a notice made of the tables of topics and commands. */
#include "admin/commands.h"
#include "admin/reply.h"
#include "admin/topics.h"

static void add_lines(struct buffer *out, const char *lines)
{
	buffer_printf(out, "\n\t");
	for (const char *at = lines; *at; at++)
		buffer_printf(out, *at == '\n' ? "%c\t" : "%c", *at);
}

static void fill(struct result *result, const struct command_call *call)
{
	struct buffer detail = {0};

	(void)call;
	topics_help(&detail);
	for (const struct command *command = commands; command->word; command++) {
		if (command->help)
			add_lines(&detail, command->help);
	}
	buffer_append(&detail, "", 1);
	if (detail.failed)
		result->out->failed = true;
	else
		reply_notice(result->out, "Console usage", (const char *)detail.data);
	buffer_free(&detail);
}

const struct topic show_help = {.name = "HELP", .fill = fill};
