/* SPDX-License-Identifier: ISC */
#include "setup/convert/own_file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/entry.h"
#include "config/ini.h"
#include "config/snapshot.h"
#include "setup/convert/source.h"

/* --- what behaves otherwise --------------------------------------------------------------- */

/* doc/differences.md has more about each. */
static const struct {
	const char *name;
	const char *value; /* the row is about this value only; NULL: about any */
	const char *remark;
} differences[] = {
	{"application_name_add_host", "1", "the address is kept whole, and the name cut"},
	{"auth_hba_file", NULL, "--check counts a bad rule as an error"},
	{"auth_query", NULL,
		"runs on connections without any state of clients, a quarter of the pool at most"},
	{"client_tls_ca_file", NULL,
		"below client_tls_sslmode = verify-ca too, clients are asked for a certificate"},
	{"idle_transaction_timeout", NULL,
		"closes the client; its server is rolled back and kept"},
	{"ignore_startup_parameters", NULL,
		"others are not refused, they follow their client (startup_parameters = strict "
		"refuses them)"},
	{"logfile", NULL, "similar lines are limited to log_repeats a second"},
	{"max_db_connections", NULL, "pools that wait get free places in turn, by pool_weight"},
	{"max_prepared_statements", NULL,
		"SQL's PREPARE and EXECUTE, and unnamed statements, work in transaction mode too"},
	{"max_user_connections", NULL,
		"pools that wait get free places in turn, by pool_weight"},
	{"min_pool_size", NULL,
		"kept without clients too, if a secret to log in with is known"},
	{"pool_mode", "statement",
		"a client's settings follow it (session_state = ignore: no)"},
	{"pool_mode", "transaction",
		"a client's settings, roles and statements follow it, and what cannot follow keeps "
		"its server, up to max_pinned (session_state = ignore is PgBouncer's way)"},
	{"query_timeout", NULL, "closes the client; its server is cancelled and kept"},
	{"scram_iterations", NULL, "at most 1000000"},
	{"server_lifetime", NULL,
		"each server goes at an age of its own in the last tenth of it, and is replaced "
		"before"},
	{"server_reset_query_always", "1", "not needed: no client sees the state of another"},
	{"transaction_timeout", NULL, "closes the client; its server is cancelled and kept"},
};

/* --- reading ------------------------------------------------------------------------------ */

enum part { OTHERS, MAIN, DATABASES };

struct reading {
	const char *file;
	struct problems *findings;
	bool *dropped; /* lines of the file that become comments, from 1 */
	unsigned lines;
	bool masked;
};

static bool is_main(const char *section)
{
	return strcmp(section, "pgbouncer") == 0 || strcmp(section, "pgusher") == 0;
}

static const void *on_section(void *context, const struct ini_place *place, const char *name)
{
	static const enum part parts[] = {OTHERS, MAIN, DATABASES};

	(void)context;
	(void)place;
	return is_main(name)			 ? &parts[MAIN]
		: strcmp(name, "databases") == 0 ? &parts[DATABASES]
						 : &parts[OTHERS];
}

/* A setting that only a line of [databases] has, as some containers write it. */
static bool is_misplaced(const char *name)
{
	const struct entry_grammar *grammar = database_config_grammar();

	if (settings_find(name))
		return false;
	for (size_t i = 0; i < grammar->key_count; i++) {
		if (strcmp(grammar->keys[i].name, name) == 0)
			return true;
	}
	return false;
}

static void drop_line(struct reading *reading, const char *file, unsigned line)
{
	if (strcmp(file, reading->file) == 0 && line > 0 && line <= reading->lines)
		reading->dropped[line] = true;
}

static void on_pair(void *context, const void *section, const struct ini_place *place,
	const char *key, const char *value)
{
	struct reading *reading = context;
	const enum part part = *(const enum part *)section;

	if (part != MAIN)
		return;
	if (is_misplaced(key)) {
		problems_add(reading->findings, PROBLEM_SKIPPED, place->file, place->line,
			"%s: obsolete here: a key of the lines in [databases]%s", key,
			strcmp(key, "pool_size") == 0 ? "; default_pool_size is for all" : "");
		drop_line(reading, place->file, place->line);
	}
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
		if (strcmp(differences[i].name, key) == 0 &&
			(!differences[i].value || strcmp(differences[i].value, value) == 0))
			problems_add(reading->findings, PROBLEM_WARNING, place->file,
				place->line, "%s: %s", key, differences[i].remark);
	}
}

/* --- mistakes ----------------------------------------------------------------------------- */

static bool is_dropped(const struct reading *reading, const struct problem *problem)
{
	return strcmp(problem->file, reading->file) == 0 && problem->line > 0 &&
		problem->line <= reading->lines && reading->dropped[problem->line];
}

/* Drop the lines with mistakes. The text is readable as far as its grammar goes. */
static void drop_mistakes(struct reading *reading, const char *text, size_t length)
{
	struct problems problems = {0};
	const struct problem *problem = NULL;

	snapshot_unref(snapshot_parse(reading->file, text, length, NULL, &problems));
	while ((problem = problems_next(&problems, problem)) != NULL) {
		if (problem->severity != PROBLEM_ERROR || is_dropped(reading, problem))
			continue;
		problems_add(reading->findings, PROBLEM_SKIPPED, problem->file, problem->line,
			"not possible here: %s", problem->text);
		drop_line(reading, problem->file, problem->line);
	}
	problems_free(&problems);
}

static unsigned count_lines(const char *text, size_t length)
{
	unsigned lines = 1;

	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	return lines;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The length of the value of `password =` or the like at the front; 0 if it is none. */
static size_t secret_length(const char *at, const char *end, size_t *before)
{
	const char *start = at;

	while (at < end && isalpha((unsigned char)*at))
		at++;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (at == end || *at != '=')
		return 0;
	at++;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	*before = (size_t)(at - start);
	start = at;
	if (at < end && (*at == '\'' || *at == '"')) {
		const char quote = *at++;

		/* A doubled quote is one quote of the value. */
		while (at < end && (*at != quote || (at + 1 < end && at[1] == quote)))
			at += *at == quote ? 2 : 1;
		at += at < end;
		/* A quote that was not doubled: where the value ends is not known. */
		if (at < end && !is_blank(*at))
			at = end;
	} else {
		while (at < end && !is_blank(*at))
			at++;
	}
	return (size_t)(at - start);
}

/* The next `password` or the like, in a key that may be misspelt; NULL: none. */
static const char *find_password(const char *at, const char *end)
{
	static const char word[] = "passw"; /* password, ldapbindpasswd */
	const size_t length = strlen(word);

	for (; (size_t)(end - at) >= length; at++) {
		if (strncasecmp(at, word, length) == 0)
			return at;
	}
	return NULL;
}

/* Write one line without its secrets. */
static void write_masked(struct buffer *out, const char *at, const char *end)
{
	const char *found;

	while ((found = find_password(at, end)) != NULL) {
		size_t before = 0;
		const size_t length = secret_length(found, end, &before);

		if (length == 0)
			before = 1;
		buffer_append(out, at, (size_t)(found - at) + before);
		if (length > 0)
			buffer_printf(out, "********");
		at = found + before + length;
	}
	buffer_append(out, at, (size_t)(end - at));
}

static bool is_header(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	return at < end && *at == '[';
}

static void write_lines(
	const struct reading *reading, const char *text, size_t length, struct buffer *out)
{
	const char *end = text + length;
	bool drops_section = false; /* the lines of a section go with its header */
	unsigned line = 1;

	while (text < end) {
		const char *next = memchr(text, '\n', (size_t)(end - text));

		if (is_header(text, next ? next : end))
			drops_section = reading->dropped[line];
		if (reading->dropped[line] || drops_section)
			buffer_printf(out, "; ");
		if (reading->masked)
			write_masked(out, text, next ? next : end);
		else
			buffer_append(out, text, (size_t)((next ? next : end) - text));
		buffer_append(out, "\n", 1);
		text = next ? next + 1 : end;
		line++;
	}
}

bool own_file_convert(const char *file, const char *text, size_t length, bool masked,
	struct buffer *out, struct problems *findings)
{
	static const struct ini_events events = {.section = on_section, .pair = on_pair};
	struct reading reading = {
		.file = file,
		.findings = findings,
		.lines = count_lines(text, length),
		.masked = masked,
	};

	if (!source_is_text(findings, file, text, length))
		return false;
	reading.dropped = calloc(reading.lines + 1, sizeof(*reading.dropped));
	if (!reading.dropped) {
		problems_add(findings, PROBLEM_ERROR, file, 0, "out of memory");
		return false;
	}
	ini_read_text(file, text, length, &events, &reading, findings);
	if (findings->errors == 0) {
		drop_mistakes(&reading, text, length);
		write_lines(&reading, text, length, out);
	}
	free(reading.dropped);
	return findings->errors == 0;
}

/* --- what differs from the defaults ------------------------------------------------------- */

static void print_difference(const struct setting_row *row, const struct settings *settings,
	const struct settings *defaults)
{
	char now[32], before[32];
	const char *value = settings_render(row, settings, now, sizeof(now));
	const char *other = settings_render(row, defaults, before, sizeof(before));

	/* The name of the file is no setting of it. */
	if (!value || strcmp(row->name, "conffile") == 0 ||
		(other && strcmp(value, other) == 0))
		return;
	if (!other)
		printf("%s = %s (not set by default)\n", row->name, value);
	else
		printf("%s = %s (default: %s)\n", row->name, value,
			other[0] == '\0' ? "empty" : other);
}

bool own_file_print_differences(const char *text, size_t length)
{
	struct problems problems = {0};
	struct snapshot *snapshot = snapshot_parse("result", text, length, NULL, &problems);
	struct settings defaults;
	size_t count;
	const struct setting_row *rows = settings_rows(&count);
	const bool done = snapshot && settings_defaults(&defaults);

	for (size_t i = 0; done && i < count; i++)
		print_difference(&rows[i], snapshot_settings(snapshot), &defaults);
	if (snapshot)
		settings_free(&defaults);
	snapshot_unref(snapshot);
	problems_free(&problems);
	return done;
}
