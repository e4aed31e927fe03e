/* SPDX-License-Identifier: ISC */
/*
 * Makes the reference page of the configuration: copies a text, and replaces each line such as
 * `@settings@` by the table of that name. The build runs this program; it is not installed.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/database_config.h"
#include "config/entry.h"
#include "config/peer_config.h"
#include "config/settings.h"
#include "config/user_config.h"

/* --- Markdown ----------------------------------------------------------------------------- */

/* Pandoc prints any punctuation behind a backslash literally. */
static void write_escaped(const char *text)
{
	for (; *text != '\0'; text++) {
		if (ispunct((unsigned char)*text))
			putchar('\\');
		putchar(*text);
	}
}

static void write_field(const char *before, const char *text, const char *after)
{
	fputs(before, stdout);
	write_escaped(text);
	fputs(after, stdout);
}

/* --- tables ------------------------------------------------------------------------------- */

static const char *words_for(enum setting_when when)
{
	switch (when) {
	case SETTING_LIVE:
		return "at once";
	case SETTING_NEW_LINKS:
		return "for what starts afterwards";
	case SETTING_RESTART:
		return "at the next start";
	}
	return "";
}

static void write_setting(const struct setting_row *row)
{
	char allowed[256];

	settings_allowed(row, allowed, sizeof(allowed));
	write_field("**", row->name, "**\n");
	write_field(":   ", row->doc, "\n\n");
	write_field("    Allowed: ", allowed, ". ");
	if (!row->default_text)
		fputs("Not set by default. ", stdout);
	else if (row->default_text[0] == '\0')
		fputs("Empty by default. ", stdout);
	else
		write_field("Default: ", row->default_text, ". ");
	write_field("A change counts ", words_for(row->when), ".");
	fputs("\n\n", stdout);
}

static void write_settings(void)
{
	size_t count;
	const struct setting_row *rows = settings_rows(&count);

	for (size_t i = 0; i < count; i++)
		write_setting(&rows[i]);
}

static void write_keys(const struct entry_grammar *grammar)
{
	for (size_t i = 0; i < grammar->key_count; i++) {
		const struct entry_key *key = &grammar->keys[i];

		write_field("**", key->name, "**\n");
		write_field(":   ", key->doc, "");
		write_field(" Allowed: ", entry_allowed(key), ".");
		fputs("\n\n", stdout);
	}
}

static void write_databases(void)
{
	write_keys(database_config_grammar());
}

static void write_users(void)
{
	write_keys(user_config_grammar());
}

static void write_peers(void)
{
	write_keys(peer_config_grammar());
}

static const struct {
	const char *line;
	void (*write)(void);
} tables[] = {
	/* Sorted by line. */
	{"@databases@\n", write_databases},
	{"@peers@\n", write_peers},
	{"@settings@\n", write_settings},
	{"@users@\n", write_users},
};

/* --- the page ----------------------------------------------------------------------------- */

static void write_line(const char *line)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (strcmp(line, tables[i].line) == 0) {
			tables[i].write();
			return;
		}
	}
	fputs(line, stdout);
}

int main(int count, char **arguments)
{
	FILE *page = count == 2 ? fopen(arguments[1], "r") : NULL;
	char *line = NULL;
	size_t size = 0;

	if (!page) {
		fprintf(stderr, "Usage: reference PAGE: %s\n",
			count == 2 ? strerror(errno) : "one page is needed");
		return EXIT_FAILURE;
	}
	while (getline(&line, &size, page) > 0)
		write_line(line);
	free(line);
	if (ferror(page) || fclose(page) != 0 || fflush(stdout) != 0)
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
