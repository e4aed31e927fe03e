/* SPDX-License-Identifier: ISC */
#include "wire/suspicion.h"

#include <string.h>
#include <strings.h>

/* --- words -------------------------------------------------------------------------------- */

struct text {
	const char *begin, *at, *end;
};

static bool is_in_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static bool is_white(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool begins_with(const struct text *text, const char *word)
{
	const size_t length = strlen(word);

	return (size_t)(text->end - text->at) >= length &&
		strncasecmp(text->at, word, length) == 0;
}

/* Is this word here, with nothing of a name before and behind it? */
static bool is_word(const struct text *text, const char *word)
{
	const char *behind = text->at + strlen(word);

	return begins_with(text, word) && (behind == text->end || !is_in_name(*behind)) &&
		(text->at == text->begin || !is_in_name(text->at[-1]));
}

/* Skip white space, comments and opening parentheses. */
static void skip_white(struct text *text)
{
	for (;;) {
		while (text->at < text->end && (is_white(*text->at) || *text->at == '('))
			text->at++;
		if (begins_with(text, "--")) {
			while (text->at < text->end && *text->at != '\n' && *text->at != '\r')
				text->at++;
		} else if (begins_with(text, "/*")) {
			text->at += 2;
			while (text->at < text->end && !begins_with(text, "*/"))
				text->at++;
			text->at += text->at < text->end ? 2 : 0;
		} else {
			return;
		}
	}
}

static session_topics note_name(const struct suspicion_names *names, struct text text)
{
	skip_white(&text);
	return !names || names->note(names->argument, text.at, (size_t)(text.end - text.at))
		? 0
		: TOPIC_UNREAD;
}

/* Is the name here whole, with nothing between its parts? It may be in two quoted ones. */
static bool has_whole_name(struct text text)
{
	skip_white(&text);
	while (text.at < text.end &&
		(is_in_name(*text.at) || *text.at == '.' || *text.at == '"'))
		text.at++;
	if (text.at > text.begin && text.at[-1] == '.')
		return false;
	skip_white(&text);
	return text.at == text.end || *text.at != '.';
}

/* Behind SET: its tag will tell that it was run, but not what it has set. */
static session_topics read_set(const struct suspicion_names *names, struct text text)
{
	text.at += strlen("set");
	skip_white(&text);
	if (is_word(&text, "session"))
		text.at += strlen("session");
	return !names || has_whole_name(text) ? note_name(names, text) : TOPIC_UNREAD;
}

/* Consume a string without escapes, or a parameter. */
static bool take_argument(struct text *text)
{
	const char *from = text->at;

	if (from == text->end || (*from != '\'' && *from != '$'))
		return false;
	do
		text->at++;
	while (text->at < text->end &&
		(*from == '$' ? *text->at >= '0' && *text->at <= '9'
			      : *text->at != '\'' && *text->at != '\\'));
	if (*from == '$')
		return text->at - from > 1;
	return text->at < text->end && *text->at++ == '\'';
}

/* Consume a cast, if there is one. */
static void skip_cast(struct text *text)
{
	skip_white(text);
	if (!begins_with(text, "::"))
		return;
	text->at += strlen("::");
	skip_white(text);
	while (text->at < text->end && is_in_name(*text->at))
		text->at++;
	skip_white(text);
}

/* Is the name as it is written, or bound, and not what an expression makes of it? */
static bool has_plain_argument(struct text text)
{
	skip_white(&text);
	if (!take_argument(&text))
		return false;
	skip_cast(&text);
	return text.at < text.end && *text.at == ',';
}

static session_topics read_set_config(const struct suspicion_names *names, struct text text)
{
	text.at += strlen("set_config");
	/* Behind a name in quotes. */
	if (text.at < text.end && *text.at == '"')
		text.at++;
	if (names && !has_plain_argument(text))
		return TOPIC_SETTINGS | TOPIC_UNREAD;
	return TOPIC_SETTINGS | note_name(names, text);
}

static bool is_line_end(char c)
{
	return c == '\n' || c == '\r';
}

/* Does the line that ends here have a comment up to its end, or what looks like it? */
static bool ends_in_comment(const struct text *text, const char *end)
{
	for (; end - text->begin >= 2 && !is_line_end(end[-1]); end--) {
		if (end[-1] == '-' && end[-2] == '-')
			return true;
	}
	return false;
}

/*
 * Returns where the word before this one ends; NULL if there is none, or a comment is between, which
 * may be behind anything.
 */
static const char *end_before(const struct text *text)
{
	const char *at = text->at;
	bool other_line = false;

	for (; at > text->begin && is_white(at[-1]); at--)
		other_line = other_line || is_line_end(at[-1]);
	if (at == text->begin || at[-1] == '/' || (other_line && ends_in_comment(text, at)))
		return NULL;
	return at;
}

static bool is_behind(const struct text *text, const char *end, const char *word)
{
	const size_t length = strlen(word);

	return (size_t)(end - text->begin) >= length &&
		strncasecmp(end - length, word, length) == 0;
}

/*
 * Is this TEMP behind CREATE or INTO, or a name in pg_temp? Tags tell of CREATE in most cases, but
 * not of CREATE TABLE AS and SELECT INTO, which have the tag of SELECT. Columns may be called temp.
 */
static bool is_temporary(const struct text *text)
{
	static const char *const before[] = {"create", "replace", "local", "global", "into"};
	const char *end;

	if (is_behind(text, text->at, "pg_"))
		return true;
	if (!is_word(text, "temp") && !is_word(text, "temporary"))
		return false;
	end = end_before(text);
	for (size_t i = 0; end && i < sizeof(before) / sizeof(before[0]); i++) {
		if (is_behind(text, end, before[i]))
			return true;
	}
	return end == NULL;
}

/* Is this LOAD and the beginning of a string? */
static bool loads_library(struct text text)
{
	if (!is_word(&text, "load"))
		return false;
	text.at += strlen("load");
	skip_white(&text);
	return text.at < text.end && strchr("'$eEuU", *text.at);
}

static session_topics topics_here(const struct suspicion_names *names, const struct text *text)
{
	switch (*text->at | 0x20) {
	case 's':
		if (begins_with(text, "set_config"))
			return read_set_config(names, *text);
		return is_word(text, "set") ? read_set(names, *text) : 0;
	case 'a':
		return begins_with(text, "advisory") && !begins_with(text, "advisory_xact")
			? TOPIC_LOCKS
			: 0;
	case 't':
		return begins_with(text, "temp") && is_temporary(text) ? TOPIC_TEMPORARY : 0;
	case 'u':
		/* A name that is written in escapes; and the view that has a rule for UPDATE. */
		if (begins_with(text, "u&\""))
			return TOPICS_UNSEEN;
		return is_word(text, "update") && suspicion_names_settings(text->at, text->end)
			? TOPICS_ALL
			: 0;
	default:
		return 0;
	}
}

session_topics suspicion_of_text(
	const char *text, size_t length, bool cut, const struct suspicion_names *names)
{
	const size_t most = length < SUSPICION_TEXT_MAX ? length : SUSPICION_TEXT_MAX;
	struct text reading = {text, text, text + strnlen(text, most)};
	session_topics topics = cut || most < length ? TOPICS_UNSEEN : 0;
	bool runs_block = false;

	for (; reading.at < reading.end; reading.at++) {
		topics |= topics_here(names, &reading);
		/* The tag of DO does not tell of a LOAD in it, and no question finds one. */
		runs_block = runs_block || is_word(&reading, "do");
		if (runs_block && loads_library(reading))
			topics |= TOPIC_LIBRARY;
	}
	return topics;
}

/* --- what is refused ---------------------------------------------------------------------- */

/* Is this word behind WITH? WITHOUT HOLD is the default of cursors. */
static bool is_behind_with(const struct text *text)
{
	const char *end = end_before(text);

	return !end || is_behind(text, end, "with");
}

static session_topics staying_here(const struct text *text)
{
	switch (*text->at | 0x20) {
	case 'a':
		return begins_with(text, "advisory_lock") ? TOPIC_LOCKS : 0;
	case 't':
		return begins_with(text, "temp") && is_temporary(text) ? TOPIC_TEMPORARY : 0;
	case 'h':
		return is_word(text, "hold") && is_behind_with(text) ? TOPIC_CURSORS : 0;
	default:
		return 0;
	}
}

/* Is this PREPARE TRANSACTION 'name'? A statement may have the name transaction. */
static bool prepares_transaction(struct text text)
{
	text.at += strlen("prepare");
	skip_white(&text);
	if (!is_word(&text, "transaction"))
		return false;
	text.at += strlen("transaction");
	skip_white(&text);
	return text.at < text.end && strchr("'$eEuU", *text.at);
}

/* The first word of a statement. */
static session_topics staying_command(const struct text *text)
{
	if (is_word(text, "listen"))
		return TOPIC_CHANNELS;
	if (is_word(text, "prepare"))
		return prepares_transaction(*text) ? 0 : TOPIC_STATEMENTS;
	return is_word(text, "load") ? TOPIC_LIBRARY : 0;
}

session_topics suspicion_of_staying(const char *text, size_t length)
{
	struct text reading = {text, text, text + strnlen(text, length)};
	session_topics topics = 0;
	bool first = true;

	while (true) {
		if (first)
			skip_white(&reading);
		if (reading.at == reading.end)
			return topics;
		topics |= staying_here(&reading);
		if (first)
			topics |= staying_command(&reading);
		first = *reading.at == ';';
		reading.at++;
	}
}

/* --- functions ---------------------------------------------------------------------------- */

session_topics suspicion_of_function(uint32_t oid)
{
	/* lo_create, loread, lowrite, lo_open, lo_close, lo_lseek, lo_creat, lo_tell, ... */
	static const uint16_t harmless[] = {
		715, 952, 953, 954, 955, 956, 957, 958, 964, 1004, 3170, 3171, 3172};

	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
		if (oid == harmless[i])
			return 0;
	}
	return TOPICS_UNSEEN;
}

/* --- tags --------------------------------------------------------------------------------- */

static const struct {
	const char *tag;
	session_topics raises; /* these may have begun */
	session_topics ends; /* these may have ended, if they pin the server */
} tags[] = {
	{"SET", TOPIC_SETTINGS, 0},
	{"RESET", TOPIC_SETTINGS, 0},
	{"DO", TOPICS_UNSEEN, 0},
	{"CALL", TOPICS_UNSEEN, 0},
	{"LOAD", TOPIC_LIBRARY | TOPIC_SETTINGS, 0},
	{"LISTEN", TOPIC_CHANNELS, 0},
	{"UNLISTEN", 0, TOPIC_CHANNELS},
	{"PREPARE", TOPIC_STATEMENTS, 0},
	{"DEALLOCATE", 0, TOPIC_STATEMENTS},
	{"DEALLOCATE ALL", 0, TOPIC_STATEMENTS},
	{"DISCARD ALL", 0, TOPICS_PINNING & ~(TOPIC_LIBRARY | TOPIC_SEQUENCES)},
	{"DISCARD TEMP", 0, TOPIC_TEMPORARY},
	{"DECLARE CURSOR", TOPIC_CURSORS, 0},
	{"CLOSE CURSOR", 0, TOPIC_CURSORS},
	{"CLOSE CURSOR ALL", 0, TOPIC_CURSORS},
};

session_topics suspicion_of_tag(const char *tag, session_topics pinned)
{
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		if (strcmp(tag, tags[i].tag) == 0)
			return tags[i].raises | (tags[i].ends & pinned);
	}
	/* Anything can be created in the temporary schema, and dropped from it. */
	if (strncmp(tag, "CREATE ", 7) == 0)
		return TOPIC_TEMPORARY;
	return strncmp(tag, "DROP ", 5) == 0 ? TOPIC_TEMPORARY & pinned : 0;
}
