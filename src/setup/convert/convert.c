/* SPDX-License-Identifier: ISC */
#include "setup/convert/convert.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/file.h"
#include "config/snapshot.h"
#include "setup/convert/new_files.h"
#include "setup/convert/own_file.h"
#include "setup/convert/poolers.h"
#include "setup/convert/recognize.h"

/* What is made: the ini, and the files that it names. */
struct result {
	const struct convert_request *request;
	char paths[3][PATH_MAX]; /* of ini, users, rules */
	struct buffer ini, users, rules;
	struct source source;
	struct draft *draft;
	struct problems *findings; /* of the draft */
};

enum { INI, USERS, RULES };

/* --- findings ----------------------------------------------------------------------------- */

/* The main file first, and its lines in order. */
static int compare_findings(const void *a, const void *b, void *main_file)
{
	const struct problem *left = *(const struct problem *const *)a;
	const struct problem *right = *(const struct problem *const *)b;
	const bool left_main = strcmp(left->file, main_file) == 0;
	const bool right_main = strcmp(right->file, main_file) == 0;
	const int order = strcmp(left->file, right->file);

	if (left_main != right_main)
		return left_main ? -1 : 1;
	if (order != 0)
		return order;
	if (left->line != right->line)
		return left->line < right->line ? -1 : 1;
	return left < right ? -1 : left > right;
}

static void print_finding(const struct problem *finding)
{
	static const char *const words[] = {
		[PROBLEM_ERROR] = "",
		[PROBLEM_SKIPPED] = "not converted: ",
		[PROBLEM_WARNING] = "note: ",
	};

	if (finding->line > 0)
		fprintf(stderr, "%s:%u: %s%s\n", finding->file, finding->line,
			words[finding->severity], finding->text);
	else if (finding->file[0] != '\0')
		fprintf(stderr, "%s: %s%s\n", finding->file, words[finding->severity],
			finding->text);
	else
		fprintf(stderr, "%s%s\n", words[finding->severity], finding->text);
}

static void print_findings(const struct problems *findings, const char *main_file)
{
	const struct problem **sorted = calloc(findings->count + 1, sizeof(struct problem *));
	const size_t found = findings->errors + findings->skipped + findings->warnings;

	for (size_t i = 0; sorted && i < findings->count; i++)
		sorted[i] = &findings->list[i];
	if (sorted)
		qsort_r(sorted, findings->count, sizeof(*sorted), compare_findings,
			(char *)main_file);
	for (size_t i = 0; sorted && i < findings->count; i++)
		print_finding(sorted[i]);
	if (found > findings->count)
		fprintf(stderr, "%s: and %zu more\n", main_file, found - findings->count);
	free(sorted);
}

/* What ends the conversion is told in any case, the rest up to PROBLEMS_KEPT. */
static bool refuse_at(struct result *result, const char *file, unsigned line, const char *why)
{
	problems_add(result->findings, PROBLEM_ERROR, file, line, "%s", why);
	if (!result->findings->last_kept)
		fprintf(stderr, "%s:%u: %s\n", file, line, why);
	return false;
}

static bool refuse(struct result *result, const char *why)
{
	return refuse_at(result, result->request->path, 0, why);
}

/* --- names -------------------------------------------------------------------------------- */

/* The ini names the other files by absolute paths: pgusher may be started anywhere. */
static bool find_folder(struct result *result, char folder[PATH_MAX])
{
	char copy[PATH_MAX];

	snprintf(copy, sizeof(copy), "%s", result->request->output);
	if (realpath(dirname(copy), folder))
		return true;
	snprintf(copy, sizeof(copy), "its folder cannot be used: %s", strerror(errno));
	return refuse_at(result, result->request->output, 0, copy);
}

static bool name_files(struct result *result)
{
	static const char *const ends[] = {
		[INI] = ".ini", [USERS] = ".userlist.txt", [RULES] = ".hba.conf"};
	const char *output = result->request->output;
	const char *slash = output ? strrchr(output, '/') : NULL;
	const char *name = slash ? slash + 1 : output ? output : "pgusher.ini";
	size_t stem = strlen(name);
	char folder[PATH_MAX] = "";

	if (stem == 0 || strlen(name) > NAME_MAX - strlen(".userlist.txt.1234567.new"))
		return refuse(result, "the name of the output is not possible");
	if (output && !find_folder(result, folder))
		return false;
	if (stem > strlen(ends[INI]) && strcmp(name + stem - strlen(ends[INI]), ends[INI]) == 0)
		stem -= strlen(ends[INI]);
	for (unsigned i = INI; i <= RULES; i++) {
		const int length = snprintf(result->paths[i], PATH_MAX, "%s%s%.*s%s", folder,
			output ? "/" : "", (int)(i == INI ? strlen(name) : stem), name,
			i == INI ? "" : ends[i]);

		if (length >= PATH_MAX)
			return refuse(result, "the name of the output is too long");
	}
	return true;
}

/* --- conversion --------------------------------------------------------------------------- */

static const char *title(struct conversion *conversion)
{
	return conversion_text(conversion, "Made by pgusher --convert of %s", conversion->file);
}

static bool set_path(struct result *result, const char *name, const char *path)
{
	char why[256];

	if (draft_set(result->draft, name, path, why, sizeof(why)))
		return true;
	return refuse(result, why);
}

static bool write_texts(struct result *result, struct conversion *conversion)
{
	const enum draft_secrets secrets =
		result->request->output ? DRAFT_SHOW_SECRETS : DRAFT_MASK_SECRETS;
	const struct buffer *wanted = &conversion->users_wanted;

	buffer_append(&result->users, wanted->data, wanted->length);
	if (!draft_write_users(result->draft, secrets, &result->users))
		return refuse(result, "out of memory");
	if (result->users.length > 0 && !set_path(result, "auth_file", result->paths[USERS]))
		return false;
	draft_title(result->draft, title(conversion));
	if (!draft_write(result->draft, secrets, &result->ini) || conversion->failed ||
		result->users.failed || conversion->hba.failed)
		return refuse(result, "out of memory, or more than can be converted");
	buffer_append(&result->rules, conversion->hba.data, conversion->hba.length);
	return !result->rules.failed || refuse(result, "out of memory");
}

static bool convert_other(
	struct result *result, enum pooler_kind kind, const char *text, size_t length)
{
	struct conversion conversion = {
		.source = &result->source,
		.draft = result->draft,
		.file = result->request->path,
		.rules_path = result->paths[RULES],
	};
	bool done = false;

	buffer_init_secret(&conversion.hba);
	switch (kind) {
	case POOLER_ODYSSEY:
		done = odyssey_convert(&conversion, text, length);
		break;
	case POOLER_PGCAT:
		done = pgcat_convert(&conversion, text, length);
		break;
	case POOLER_PGAGROAL:
		done = pgagroal_convert(&conversion, text, length);
		break;
	case POOLER_PGBOUNCER:
	case POOLER_UNKNOWN:
		break;
	}
	done = done && write_texts(result, &conversion);
	buffer_wipe(&conversion.hba);
	buffer_free(&conversion.users_wanted);
	return done;
}

/* Whether a start would take the result. Files that it names may not be there yet. */
static bool check_result(struct result *result)
{
	struct problems problems = {0};
	const struct problem *problem = NULL;
	struct hba *rules;

	snapshot_unref(snapshot_parse("the result", (const char *)result->ini.data,
		result->ini.length, NULL, &problems));
	rules = hba_parse("the rules", (const char *)result->rules.data, result->rules.length,
		NULL, &problems);
	hba_unref(rules);
	while ((problem = problems_next(&problems, problem)) != NULL) {
		const bool is_rule = strcmp(problem->file, "the rules") == 0;

		if (problem->severity == PROBLEM_ERROR || is_rule)
			refuse_at(result, problem->file, problem->line, problem->text);
	}
	problems_free(&problems);
	return result->findings->errors == 0;
}

static bool convert_text(struct result *result, const struct file_text *file)
{
	const struct convert_request *request = result->request;
	const enum pooler_kind kind = request->pooler
		? recognize_name(request->pooler)
		: recognize_file(request->path, file->text, file->length);

	if (kind == POOLER_UNKNOWN && request->pooler)
		return refuse(result, "--from has one of these names: " RECOGNIZE_NAMES);
	if (kind == POOLER_UNKNOWN)
		return refuse(result,
			"it is not seen of which pooler this file is: name it by --from=POOLER, "
			"one of " RECOGNIZE_NAMES);
	if (kind != POOLER_PGBOUNCER)
		return convert_other(result, kind, file->text, file->length);
	return own_file_convert(request->path, file->text, file->length, !request->output,
		&result->ini, result->findings);
}

static bool convert(struct result *result)
{
	struct file_text file;
	bool done;

	if (!name_files(result))
		return false;
	if (!file_read(result->request->path, SOURCE_FILE_LIMIT, &file))
		return refuse(result, strerror(errno));
	done = convert_text(result, &file);
	file_text_free(&file);
	return done && check_result(result);
}

/* --- output ------------------------------------------------------------------------------- */

/* What would be another file, as a comment. */
static void print_comment(const char *name, const struct buffer *text)
{
	const char *at = (const char *)text->data, *end = at ? at + text->length : NULL;

	if (text->length == 0)
		return;
	printf("\n; The file %s:\n", name);
	while (at < end) {
		const char *next = memchr(at, '\n', (size_t)(end - at));

		printf("; %.*s\n", (int)((next ? next : end) - at), at);
		at = next ? next + 1 : end;
	}
}

static bool print_result(struct result *result)
{
	static const char masked[] = "********";

	fwrite(result->ini.data, 1, result->ini.length, stdout);
	print_comment(result->paths[USERS], &result->users);
	print_comment(result->paths[RULES], &result->rules);
	if (result->users.length > 0 || result->rules.length > 0 ||
		memmem(result->ini.data, result->ini.length, masked, strlen(masked)))
		problems_add(result->findings, PROBLEM_WARNING, "", 0,
			"stdout has no passwords, and other files as comments: --output=FILE "
			"writes all");
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	return refuse_at(result, "stdout", 0, strerror(errno));
}

static bool write_result(struct result *result)
{
	const struct buffer *const contents[] = {
		[INI] = &result->ini, [USERS] = &result->users, [RULES] = &result->rules};
	struct new_file files[3];
	size_t count = 0;
	char why[PATH_MAX + 128];

	for (unsigned i = INI; i <= RULES; i++) {
		if (i == INI || contents[i]->length > 0)
			files[count++] = (struct new_file){result->paths[i], contents[i]};
	}
	if (!new_files_write(files, count, why, sizeof(why)))
		return refuse_at(result, "", 0, why);
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "written: %s\n", files[i].path);
	return true;
}

static bool put_out(struct result *result)
{
	if (result->request->differences)
		return own_file_print_differences(
			(const char *)result->ini.data, result->ini.length);
	return result->request->output ? write_result(result) : print_result(result);
}

enum convert_result convert_run(const struct convert_request *request)
{
	struct result *result = calloc(1, sizeof(*result));
	enum convert_result end = CONVERT_FAILED;

	if (!result || !(result->draft = draft_new())) {
		free(result);
		fprintf(stderr, "out of memory\n");
		return CONVERT_FAILED;
	}
	result->request = request;
	result->findings = draft_findings(result->draft);
	buffer_init_secret(&result->ini);
	buffer_init_secret(&result->users);
	buffer_init_secret(&result->rules);
	source_init(&result->source);
	if (convert(result) && put_out(result))
		end = result->findings->skipped > 0 ? CONVERT_LOST : CONVERT_DONE;
	print_findings(result->findings, request->path);
	buffer_wipe(&result->ini);
	buffer_wipe(&result->users);
	buffer_wipe(&result->rules);
	draft_free(result->draft);
	source_free(&result->source);
	free(result);
	return end;
}
