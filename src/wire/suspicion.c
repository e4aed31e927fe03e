/* SPDX-License-Identifier: ISC */
#include "wire/suspicion.h"

#include <string.h>
#include <strings.h>

/* --- a first look ------------------------------------------------------------------------- */

typedef uint8_t bytes16 __attribute__((vector_size(16), aligned(1)));
typedef uint64_t words16 __attribute__((vector_size(16)));

/* Of 16 bytes, and the one behind each: is there a semicolon, or one of the pairs? */
static inline bool has_sign(const uint8_t *at)
{
	const bytes16 here = *(const bytes16 *)at, next = *(const bytes16 *)(at + 1);
	/* a, c and the same in upper case are c with these bits set. */
	const words16 found =
		(words16)((here == ';') | ((here == '_') & ((next | 0x22) == 'c')) |
			(((here | 0x20) == 'm') & ((next | 0x20) == 'p')));

	return (found[0] | found[1]) != 0;
}

static bool is_sign(uint8_t here, uint8_t next)
{
	return here == ';' || (here == '_' && (next | 0x22) == 'c') ||
		((here | 0x20) == 'm' && (next | 0x20) == 'p');
}

bool suspicion_may_be_in(const uint8_t *text, const uint8_t *end)
{
	enum { STEP = sizeof(bytes16) };
	const uint8_t *at = text, *last;

	if (end - text < 5)
		return false;
	if (((text[0] | 0x20) == 's' && (text[2] | 0x20) == 't') || (text[0] | 0x20) == 'r' ||
		text[0] <= '/')
		return true;
	end -= 2; /* a final semicolon, and the NUL */
	last = end - STEP;
	if (last < text) {
		for (; at < end; at++) {
			if (is_sign(at[0], at[1]))
				return true;
		}
		return false;
	}
	for (; at < last; at += STEP) {
		if (has_sign(at))
			return true;
	}
	return has_sign(last);
}

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

/* Behind SET: its tag will tell that it was run, but not what it has set. */
static session_topics read_set(const struct suspicion_names *names, struct text text)
{
	text.at += strlen("set");
	skip_white(&text);
	if (is_word(&text, "session"))
		text.at += strlen("session");
	return note_name(names, text);
}

static session_topics read_set_config(const struct suspicion_names *names, struct text text)
{
	text.at += strlen("set_config");
	/* Behind a name in quotes. */
	if (text.at < text.end && *text.at == '"')
		text.at++;
	return TOPIC_SETTINGS | note_name(names, text);
}

/*
 * Is this TEMP behind CREATE or INTO, or a name in pg_temp? Tags tell of CREATE in most cases, but
 * not of CREATE TABLE AS and SELECT INTO, which have the tag of SELECT. Columns may be called temp.
 */
static bool is_temporary(const struct text *text)
{
	static const char *const before[] = {"create", "local", "global", "into"};
	const char *at = text->at;

	if (at - text->begin >= 3 && strncasecmp(at - 3, "pg_", 3) == 0)
		return true;
	if (!is_word(text, "temp") && !is_word(text, "temporary"))
		return false;
	while (at > text->begin && is_white(at[-1]))
		at--;
	if (at == text->begin || at[-1] == '/')
		return true; /* behind a comment, which may be behind anything */
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		const size_t length = strlen(before[i]);

		if ((size_t)(at - text->begin) >= length &&
			strncasecmp(at - length, before[i], length) == 0)
			return true;
	}
	return false;
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
		/* A name that is written in escapes. */
		return begins_with(text, "u&\"") ? TOPICS_ALL : 0;
	default:
		return 0;
	}
}

session_topics suspicion_of_text(
	const char *text, size_t length, bool cut, const struct suspicion_names *names)
{
	const size_t most = length < SUSPICION_TEXT_MAX ? length : SUSPICION_TEXT_MAX;
	struct text reading = {text, text, text + strnlen(text, most)};
	session_topics topics = cut || most < length ? TOPICS_ALL : 0;

	for (; reading.at < reading.end; reading.at++)
		topics |= topics_here(names, &reading);
	return topics;
}

/* --- tags --------------------------------------------------------------------------------- */

static const struct {
	const char *tag;
	session_topics topics;
	/* It counts only if it may end what pins the server. */
	bool ends;
} tags[] = {
	{"SET", TOPIC_SETTINGS, false},
	{"RESET", TOPIC_SETTINGS, false},
	{"DO", TOPICS_ALL, false},
	{"CALL", TOPICS_ALL, false},
	{"LOAD", TOPIC_LIBRARY | TOPIC_SETTINGS, false},
	{"LISTEN", TOPIC_CHANNELS, false},
	{"UNLISTEN", TOPIC_CHANNELS, true},
	{"PREPARE", TOPIC_STATEMENTS, false},
	{"DEALLOCATE", TOPIC_STATEMENTS, true},
	{"DEALLOCATE ALL", TOPIC_STATEMENTS, true},
	{"DISCARD ALL", TOPICS_PINNING & ~TOPIC_LIBRARY, true},
	{"DISCARD TEMP", TOPIC_TEMPORARY, true},
	{"DECLARE CURSOR", TOPIC_CURSORS, false},
	{"CLOSE CURSOR", TOPIC_CURSORS, true},
	{"CLOSE CURSOR ALL", TOPIC_CURSORS, true},
};

session_topics suspicion_of_tag(const char *tag, session_topics pinned)
{
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		if (strcmp(tag, tags[i].tag) == 0)
			return tags[i].ends ? tags[i].topics & pinned : tags[i].topics;
	}
	/* Anything can be created in the temporary schema, and dropped from it. */
	if (strncmp(tag, "CREATE ", 7) == 0)
		return TOPIC_TEMPORARY;
	return strncmp(tag, "DROP ", 5) == 0 ? TOPIC_TEMPORARY & pinned : 0;
}
