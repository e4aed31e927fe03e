/* SPDX-License-Identifier: ISC */
/*
 * The file's text stays in memory: each name and secret is unquoted in place and terminated by
 * a NUL, the secret directly after the name. Users are offsets into the text, sorted by name.
 */
#include "config/userlist.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/references.h"
#include "config/file.h"
#include "crypt/scram.h"

struct userlist {
	reference_count references;
	struct file_text file;
	uint32_t *users; /* offsets of names, sorted */
	size_t count;
};

/*
 * Input is read at `at`; unquoted output, which is shorter, is written at `out` in the same
 * memory, never ahead of `at`.
 */
struct parsing {
	const char *name; /* the name of the file */
	char *at, *end, *out;
	unsigned line; /* of `at` */
	struct problems *problems;
};

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool stop(struct parsing *parsing, unsigned line, const char *what, const char *allowed)
{
	problems_add(parsing->problems, PROBLEM_WARNING, parsing->name, line,
		"%s: %s; reading stops here", what, allowed);
	return false;
}

static void advance(struct parsing *parsing)
{
	parsing->line += *parsing->at == '\n';
	parsing->at++;
}

/* Go to the next byte of this value, or to the end. */
static void skip_to(struct parsing *parsing, char wanted)
{
	while (parsing->at < parsing->end && *parsing->at != wanted)
		advance(parsing);
}

/*
 * Unquote the text after the opening quote at `at` to `out`. Returns its length as written
 * inside the quotes; -1 if the closing quote is missing.
 */
static ssize_t unquote(struct parsing *parsing)
{
	const char *start = ++parsing->at;

	for (; parsing->at < parsing->end; advance(parsing)) {
		if (*parsing->at == '"') {
			if (parsing->at + 1 == parsing->end || parsing->at[1] != '"')
				break;
			parsing->at++;
		}
		*parsing->out++ = *parsing->at;
	}
	if (parsing->at == parsing->end)
		return -1;
	return parsing->at++ - start;
}

/* The user stays known, but no login of it passes. */
static void warn_of_costly_secret(struct parsing *parsing, unsigned line, const char *secret)
{
	struct scram_secret parsed;

	if (scram_secret_parse(secret, &parsed) && !scram_secret_is_usable(&parsed))
		problems_add(parsing->problems, PROBLEM_WARNING, parsing->name, line,
			"SCRAM secret in auth file with %u iterations; more than %u are not allowed",
			(unsigned)parsed.iterations, (unsigned)SCRAM_MAX_ITERATIONS);
	explicit_bzero(&parsed, sizeof(parsed));
}

/* Parse the user at the front, which starts with a quote. Returns false if parsing stops. */
static bool parse_user(struct parsing *parsing)
{
	static const char pattern[] = "a line is \"name\" \"secret\"";
	const unsigned line = parsing->line;
	const char *secret;
	ssize_t length;

	length = unquote(parsing);
	if (length < 0)
		return stop(parsing, line, "broken auth file", pattern);
	if (length > USERLIST_NAME_LIMIT)
		return stop(parsing, line, "username too long in auth file",
			"127 bytes are allowed");
	/* The terminating NUL takes the place of the closing quote. */
	*parsing->out++ = '\0';
	skip_to(parsing, '"');
	if (parsing->at == parsing->end)
		return stop(parsing, line, "broken auth file", pattern);
	secret = parsing->out;
	length = unquote(parsing);
	if (length < 0)
		return stop(parsing, line, "broken auth file", pattern);
	if (length > USERLIST_SECRET_LIMIT)
		return stop(parsing, line, "password too long in auth file",
			"65530 bytes are allowed");
	*parsing->out++ = '\0';
	warn_of_costly_secret(parsing, line, secret);
	skip_to(parsing, '\n');
	return true;
}

static bool add_user(struct userlist *list, size_t *capacity, size_t offset)
{
	if (list->count == *capacity) {
		const size_t more = *capacity ? *capacity * 2 : 64;
		uint32_t *users = realloc(list->users, more * sizeof(*users));

		if (!users)
			return false;
		list->users = users;
		*capacity = more;
	}
	list->users[list->count++] = (uint32_t)offset;
	return true;
}

/* By name; equal names in the order of the file. */
static int compare_users(const void *a, const void *b, void *text)
{
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const int order = strcmp((const char *)text + left, (const char *)text + right);

	if (order != 0)
		return order;
	return left < right ? -1 : left > right;
}

/* Sort, and keep the last of equal names. */
static void sort_users(struct userlist *list)
{
	const char *text = list->file.text;
	size_t kept = 0;
	uint32_t *users;

	if (list->count == 0)
		return;
	qsort_r(list->users, list->count, sizeof(list->users[0]), compare_users,
		list->file.text);
	for (size_t i = 0; i < list->count; i++) {
		if (kept > 0 &&
			strcmp(text + list->users[kept - 1], text + list->users[i]) == 0)
			kept--;
		list->users[kept++] = list->users[i];
	}
	list->count = kept;
	users = realloc(list->users, kept * sizeof(*users));
	if (users)
		list->users = users;
}

enum step { STEP_USER, STEP_NOTHING, STEP_END, STEP_BROKEN };

/* Parse the user, comment or line at the front. */
static enum step parse_step(struct parsing *parsing)
{
	while (parsing->at < parsing->end && is_blank(*parsing->at))
		advance(parsing);
	if (parsing->at == parsing->end)
		return STEP_END;
	if (*parsing->at == '"')
		return parse_user(parsing) ? STEP_USER : STEP_BROKEN;
	if (*parsing->at == ';') {
		skip_to(parsing, '\n');
		return STEP_NOTHING;
	}
	stop(parsing, parsing->line, "broken auth file",
		"a line starts with a double quote or ;");
	return STEP_BROKEN;
}

/* Make the users from the text. Returns false when out of memory. */
static bool parse_users(
	struct userlist *list, const char *name, bool *broken, struct problems *problems)
{
	char *text = list->file.text;
	char *nul = memchr(text, '\0', list->file.length);
	struct parsing parsing = {
		.name = name, .at = text, .out = text, .line = 1, .problems = problems};
	size_t capacity = 0;
	enum step step;

	/* Texts end at a NUL, so parsing ends there. */
	parsing.end = nul ? nul : text + list->file.length;
	do {
		const size_t offset = (size_t)(parsing.out - text);

		step = parse_step(&parsing);
		if (step == STEP_USER && !add_user(list, &capacity, offset))
			return false;
	} while (step == STEP_USER || step == STEP_NOTHING);
	if (step == STEP_END && nul) {
		stop(&parsing, parsing.line, "broken auth file", "it holds a NUL byte");
		step = STEP_BROKEN;
	}
	*broken = step == STEP_BROKEN;
	sort_users(list);
	return true;
}

/* Takes ownership of the text. */
static struct userlist *make_list(
	const char *name, const struct file_text *file, bool *broken, struct problems *problems)
{
	struct userlist *list = calloc(1, sizeof(*list));

	if (list) {
		list->references = 1;
		list->file = *file;
		if (parse_users(list, name, broken, problems))
			return list;
		userlist_unref(list);
	} else {
		struct file_text unused = *file;

		file_text_free(&unused);
	}
	problems_add(problems, PROBLEM_ERROR, name, 0, "out of memory");
	return NULL;
}

struct userlist *userlist_parse(const char *name, const char *text, size_t length, bool *broken,
	struct problems *problems)
{
	struct file_text file = {.text = malloc(length + 1), .length = length};
	bool ignored;

	if (!file.text) {
		problems_add(problems, PROBLEM_ERROR, name, 0, "out of memory");
		return NULL;
	}
	memcpy(file.text, text, length);
	file.text[length] = '\0';
	return make_list(name, &file, broken ? broken : &ignored, problems);
}

struct userlist *userlist_load(
	const char *path, struct userlist *previous, struct problems *problems)
{
	struct file_identity identity;
	struct file_text file;
	struct userlist *list;
	bool broken;

	file_list_note(problems->files, path);
	if (previous && file_identify(path, &identity) &&
		file_identity_same(&identity, &previous->file.identity))
		return userlist_ref(previous);
	if (!file_read(path, USERLIST_FILE_LIMIT, &file)) {
		problems_add(problems, PROBLEM_WARNING, path, 0,
			"could not open auth_file %s: %s", path, strerror(errno));
		return userlist_ref(previous);
	}
	list = make_list(path, &file, &broken, problems);
	if (!previous || (list && !broken))
		return list;
	/* A partly read list would lock out the other users: keep the complete old one. */
	userlist_unref(list);
	return userlist_ref(previous);
}

struct userlist *userlist_ref(struct userlist *list)
{
	if (list)
		reference_take(&list->references);
	return list;
}

void userlist_unref(struct userlist *list)
{
	if (!list || !reference_drop(&list->references))
		return;
	file_text_free(&list->file);
	free(list->users);
	free(list);
}

static const char *secret_after(const char *name)
{
	return name + strlen(name) + 1;
}

const char *userlist_find(const struct userlist *list, const char *name)
{
	size_t low = 0, high = userlist_count(list);

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const char *found = list->file.text + list->users[middle];
		const int order = strcmp(name, found);

		if (order == 0)
			return secret_after(found);
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

size_t userlist_count(const struct userlist *list)
{
	return list ? list->count : 0;
}

bool userlist_entry(
	const struct userlist *list, size_t index, const char **name, const char **secret)
{
	if (index >= userlist_count(list))
		return false;
	*name = list->file.text + list->users[index];
	*secret = secret_after(*name);
	return true;
}
