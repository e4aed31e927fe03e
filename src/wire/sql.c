/* SPDX-License-Identifier: ISC */
/*
 * Lists of names are parsed as PostgreSQL does (any text up to a comma or white space is a
 * name, folded to lower case) and written so that its SQL grammar takes each as a name.
 */
#include "wire/sql.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Words that must be quoted as names (PostgreSQL: "SQL Key Words"). */
static const char *const reserved_words[] = {"all", "analyse", "analyze", "and", "any", "array",
	"as", "asc", "asymmetric", "both", "case", "cast", "check", "collate", "column",
	"constraint", "create", "current_catalog", "current_date", "current_role",
	"current_time", "current_timestamp", "current_user", "default", "deferrable", "desc",
	"distinct", "do", "else", "end", "except", "false", "fetch", "for", "foreign", "from",
	"grant", "group", "having", "in", "initially", "intersect", "into", "lateral",
	"leading", "limit", "localtime", "localtimestamp", "not", "null", "offset", "on",
	"only", "or", "order", "placing", "primary", "references", "returning", "select",
	"session_user", "some", "symmetric", "system_user", "table", "then", "to", "trailing",
	"true", "union", "unique", "user", "using", "variadic", "when", "where", "window",
	"with"};

/* Words that are names of functions and types only. */
static const char *const half_reserved_words[] = {"authorization", "binary", "collation",
	"concurrently", "cross", "current_schema", "freeze", "full", "ilike", "inner", "is",
	"isnull", "join", "left", "like", "natural", "notnull", "outer", "overlaps", "right",
	"similar", "tablesample", "verbose"};

/* ---- Literals --------------------------------------------------------------------------- */

/* Append with each byte of `specials` doubled. */
static void append_doubled(struct buffer *buffer, const char *text, const char *specials)
{
	size_t run;

	while (run = strcspn(text, specials), text[run] != '\0') {
		buffer_append(buffer, text, run + 1);
		buffer_append(buffer, text + run, 1);
		text += run + 1;
	}
	buffer_append(buffer, text, run);
}

/* The tag is a run of q longer than any run in the text, so the text cannot contain it. */
static void append_dollar_quote(struct buffer *buffer, size_t length)
{
	buffer_append(buffer, "$", 1);
	while (length-- > 0)
		buffer_append(buffer, "q", 1);
	buffer_append(buffer, "$", 1);
}

static void append_dollar_quoted(struct buffer *buffer, const char *text)
{
	size_t longest = 0, run = 0;

	for (const char *at = text; *at != '\0'; at++) {
		run = *at == 'q' ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	append_dollar_quote(buffer, longest + 1);
	buffer_append(buffer, text, strlen(text));
	append_dollar_quote(buffer, longest + 1);
}

void sql_append_literal(struct buffer *buffer, const char *text)
{
	const bool escaped = strchr(text, '\\') != NULL;

	/*
	 * In Shift JIS, for example, a backslash can be the second byte of a letter; doubled
	 * it would escape the next character.
	 */
	if (escaped && !text_is_ascii(text, strlen(text))) {
		append_dollar_quoted(buffer, text);
		return;
	}
	if (escaped)
		buffer_append(buffer, "E", 1);
	buffer_append(buffer, "'", 1);
	append_doubled(buffer, text, escaped ? "'\\" : "'");
	buffer_append(buffer, "'", 1);
}

/* ---- Lists of names --------------------------------------------------------------------- */

/* White space of PostgreSQL's scanner. */
#define BLANKS " \t\n\r\f\v"

/* One name of a list, unmodified. */
struct name {
	const char *start;
	size_t length;
	bool quoted; /* start and length exclude the quotes */
};

static const char *skip_blanks(const char *at)
{
	return at + strspn(at, BLANKS);
}

/* The closing quote of the name that starts here; two quotes in a row are part of the name. */
static const char *closing_quote(const char *at)
{
	while ((at = strchr(at, '"')) != NULL && at[1] == '"')
		at += 2;
	return at;
}

/* Parse a name at the front; returns the text after it, NULL if there is none. */
static const char *parse_name(const char *at, struct name *out)
{
	out->quoted = *at == '"';
	if (out->quoted) {
		const char *end = closing_quote(at + 1);

		if (end == NULL)
			return NULL;
		out->start = at + 1;
		out->length = (size_t)(end - out->start);
		return end + 1;
	}
	out->start = at;
	out->length = strcspn(at, "," BLANKS);
	return out->length > 0 ? at + out->length : NULL;
}

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static int compare_word(const void *key, const void *element)
{
	const struct name *name = key;
	const char *word = *(const char *const *)element;
	size_t i;

	for (i = 0; i < name->length; i++) {
		const int difference =
			(unsigned char)lower(name->start[i]) - (unsigned char)word[i];

		if (difference != 0)
			return difference;
	}
	return word[i] == '\0' ? 0 : -1;
}

static bool is_reserved(const struct name *name)
{
	return bsearch(name, reserved_words, sizeof(reserved_words) / sizeof(*reserved_words),
		       sizeof(*reserved_words), compare_word) != NULL;
}

bool sql_is_no_name(const char *word)
{
	const struct name name = {word, strlen(word), false};

	return is_reserved(&name) ||
		bsearch(&name, half_reserved_words,
			sizeof(half_reserved_words) / sizeof(*half_reserved_words),
			sizeof(*half_reserved_words), compare_word) != NULL;
}

/* Whether the bare word, folded to lower case, is this name in SQL. */
static bool is_plain(const struct name *name)
{
	size_t i;

	for (i = 0; i < name->length; i++) {
		const char c = lower(name->start[i]);
		const bool letter = (c >= 'a' && c <= 'z') || c == '_';

		if (!letter && !(i > 0 && c >= '0' && c <= '9'))
			return false;
	}
	return !is_reserved(name);
}

static void append_name(struct buffer *buffer, const struct name *name)
{
	const bool plain = !name->quoted && is_plain(name);
	size_t i;

	/* SQL has no empty quoted name, but takes an empty literal as one. */
	if (name->length == 0) {
		buffer_append(buffer, "''", 2);
		return;
	}
	if (!plain)
		buffer_append(buffer, "\"", 1);
	for (i = 0; i < name->length; i++) {
		const char c = (char)(name->quoted ? name->start[i] : lower(name->start[i]));

		/* Quotes of a quoted name are doubled already. */
		if (c == '"' && !name->quoted)
			buffer_append(buffer, "\"", 1);
		buffer_append(buffer, &c, 1);
	}
	if (!plain)
		buffer_append(buffer, "\"", 1);
}

/* Is the name the same when it is folded to lower case? */
static bool is_lower(const char *name)
{
	for (; *name; name++) {
		if (lower(*name) != *name)
			return false;
	}
	return true;
}

void sql_append_name(struct buffer *buffer, const char *text)
{
	const struct name name = {text, strlen(text), false};

	if (name.length > 0 && is_lower(text) && is_plain(&name)) {
		buffer_append(buffer, text, name.length);
		return;
	}
	buffer_append(buffer, "\"", 1);
	append_doubled(buffer, text, "\"");
	buffer_append(buffer, "\"", 1);
}

bool sql_append_name_list(struct buffer *buffer, const char *list)
{
	const size_t start = buffer->length;
	const char *at = skip_blanks(list);
	struct name name;

	if (*at == '\0') {
		buffer_append(buffer, "''", 2);
		return true;
	}
	while ((at = parse_name(at, &name)) != NULL) {
		append_name(buffer, &name);
		at = skip_blanks(at);
		if (*at == '\0')
			return true;
		if (*at != ',')
			break;
		buffer_append(buffer, ", ", 2);
		at = skip_blanks(at + 1);
	}
	buffer->length = start;
	return false;
}

/* ---- Names of parameters ---------------------------------------------------------------- */

void sql_append_setting_name(struct buffer *buffer, const char *name)
{
	const bool quoted = strchr(name, '.') != NULL;
	size_t part;

	for (;; name += part + 1) {
		part = strcspn(name, ".");
		if (quoted)
			buffer_append(buffer, "\"", 1);
		buffer_append(buffer, name, part);
		if (quoted)
			buffer_append(buffer, "\"", 1);
		if (name[part] == '\0')
			return;
		buffer_append(buffer, ".", 1);
	}
}

/* --- DEALLOCATE --------------------------------------------------------------------------- */

struct scanner {
	const char *at, *end;
};

static bool skip_two(struct scanner *scanner, const char *two)
{
	if (scanner->end - scanner->at < 2 || memcmp(scanner->at, two, 2) != 0)
		return false;
	scanner->at += 2;
	return true;
}

/* Skip a comment, which may contain nested comments. */
static bool skip_comment(struct scanner *scanner)
{
	int depth = 1;

	if (skip_two(scanner, "--")) {
		while (scanner->at < scanner->end && *scanner->at != '\n' &&
			*scanner->at != '\r')
			scanner->at++;
		return true;
	}
	if (!skip_two(scanner, "/*"))
		return false;
	while (scanner->at < scanner->end && depth > 0) {
		if (skip_two(scanner, "/*"))
			depth++;
		else if (skip_two(scanner, "*/"))
			depth--;
		else
			scanner->at++;
	}
	return true;
}

/* Skip white space and comments. */
static void skip_white(struct scanner *scanner)
{
	do {
		while (scanner->at < scanner->end && *scanner->at &&
			strchr(" \t\n\r\f\v", *scanner->at))
			scanner->at++;
	} while (skip_comment(scanner));
}

static bool is_in_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* Consume the next word if it is this one. */
static bool match_word(struct scanner *scanner, const char *word)
{
	const size_t length = strlen(word);

	skip_white(scanner);
	if ((size_t)(scanner->end - scanner->at) < length ||
		strncasecmp(scanner->at, word, length) != 0 ||
		(scanner->at + length < scanner->end && is_in_name(scanner->at[length])))
		return false;
	scanner->at += length;
	return true;
}

static bool parse_quoted(struct scanner *scanner, struct buffer *name)
{
	while (++scanner->at < scanner->end) {
		if (*scanner->at == '"') {
			if (++scanner->at == scanner->end || *scanner->at != '"')
				return true;
		}
		buffer_append(name, scanner->at, 1);
	}
	return false;
}

/* An unquoted name: fold it to lower case and cut it to the server's length limit. */
static bool parse_plain(struct scanner *scanner, struct buffer *name)
{
	if (scanner->at == scanner->end || (*scanner->at >= '0' && *scanner->at <= '9') ||
		*scanner->at == '$')
		return false;
	while (scanner->at < scanner->end && is_in_name(*scanner->at)) {
		const char c = *scanner->at++;
		const char small = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;

		buffer_append(name, &small, 1);
	}
	return name->length > 0;
}

bool sql_deallocated_name(const char *text, size_t length, struct buffer *name)
{
	struct scanner scanner = {text, text + strnlen(text, length)};
	bool quoted;

	if (!match_word(&scanner, "deallocate"))
		return false;
	match_word(&scanner, "prepare");
	skip_white(&scanner);
	quoted = scanner.at < scanner.end && *scanner.at == '"';
	if (!(quoted ? parse_quoted(&scanner, name) : parse_plain(&scanner, name)))
		return false;
	skip_white(&scanner);
	if (scanner.at < scanner.end && *scanner.at == ';')
		scanner.at++;
	skip_white(&scanner);
	return scanner.at == scanner.end && buffer_append(name, "", 1) &&
		(quoted || strcmp((const char *)name->data, "all") != 0);
}

bool sql_forgets_statements(const char *text, size_t length)
{
	struct scanner scanner = {text, text + strnlen(text, length)};

	if (match_word(&scanner, "deallocate"))
		match_word(&scanner, "prepare");
	else if (!match_word(&scanner, "discard"))
		return false;
	return match_word(&scanner, "all");
}
