/* SPDX-License-Identifier: ISC */
#include "config/entry.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "base/text.h"
#include "config/connstr.h"
#include "config/database_config.h"
#include "config/settings.h"

/* Bytes of a value shown in problems. */
enum { SHOWN_LIMIT = 200 };

/* --- problems ----------------------------------------------------------------------------- */

/* The text as shown in problems, cut before a possible password. */
static char *without_password(const char *text)
{
	const char *secret = strcasestr(text, "pas");
	const size_t whole = secret ? (size_t)(secret - text) : strlen(text);
	const size_t length = text_utf8_cut(text, whole, SHOWN_LIMIT);
	char *shown;

	if (asprintf(&shown, "%.*s%s", (int)length, text, text[length] ? "..." : "") < 0)
		return NULL;
	return shown;
}

bool entry_begin(struct entry *entry, const struct entry_grammar *grammar,
	const struct ini_place *place, const char *name, const char *text,
	enum problem_severity severity, struct problems *problems)
{
	*entry = (struct entry){
		.grammar = grammar,
		.place = place,
		.name = name,
		.severity = severity,
		.problems = problems,
		.text = strdup(text),
		.text_size = strlen(text) + 1,
		.shown = without_password(text),
	};
	if (entry->text && entry->shown)
		return true;
	entry->wrong = true;
	problems_add(problems, PROBLEM_ERROR, place->file, place->line, "out of memory");
	return false;
}

void entry_end(struct entry *entry)
{
	/*
	 * The walk has written NULs into it: wipe the allocated size, not up to the first NUL.
	 */
	if (entry->text)
		explicit_bzero(entry->text, entry->text_size);
	free(entry->text);
	free(entry->shown);
	entry->text = entry->shown = NULL;
}

/* Takes ownership of `what`; NULL: out of memory. The hint is not logged. */
static void refuse(struct entry *entry, char *what, const char *hint)
{
	const struct ini_place *place = entry->place;
	const char *text = what ? what : "not allowed";

	problems_add(entry->problems, entry->severity, place->file, place->line, "%s: %s%s",
		entry->name, text, hint);
	problems_log_as(entry->problems, "%s", text);
	/* The line with the place is logged once, however many mistakes the value has. */
	if (!entry->wrong)
		problems_log_as(entry->problems,
			"invalid value \"%s\" for parameter %s in configuration (%s:%u)",
			entry->shown, entry->name, place->file, place->line);
	entry->wrong = true;
	free(what);
}

void entry_refuse(struct entry *entry, const char *format, ...)
{
	va_list arguments;
	char *what;
	int length;

	va_start(arguments, format);
	length = vasprintf(&what, format, arguments);
	va_end(arguments);
	refuse(entry, length < 0 ? NULL : what, "");
}

/* List the names of all keys, for a hint when none is similar. */
static void list_keys(const struct entry_grammar *grammar, char *out, size_t size)
{
	size_t length = (size_t)snprintf(out, size, ": allowed is ");

	for (size_t i = 0; i < grammar->key_count && length < size; i++)
		length += (size_t)snprintf(out + length, size - length, "%s%s",
			i > 0 ? ", " : "", grammar->keys[i].name);
}

static void refuse_key(struct entry *entry, const char *name)
{
	const struct entry_grammar *grammar = entry->grammar;
	struct nearest nearest = {.asked = name};
	char hint[1000], *what;

	for (size_t i = 0; i < grammar->key_count; i++)
		nearest_consider(&nearest, grammar->keys[i].name);
	if (nearest.found)
		snprintf(hint, sizeof(hint), ": did you mean %s?", nearest.found);
	else
		list_keys(grammar, hint, sizeof(hint));
	if (asprintf(&what, "%s: %s", grammar->unknown, name) < 0)
		what = NULL;
	refuse(entry, what, hint);
}

/* --- values ------------------------------------------------------------------------------- */

/* Parse a whole text as a decimal number; unlike in settings, a leading 0 has no meaning. */
static bool read_number(const char *text, long long *out)
{
	const char *digits = text + (*text == '-' || *text == '+');

	if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0')
		return false;
	*out = strtoll(text, NULL, 10);
	return true;
}

/* Description of the allowed values of each type. */
static const struct {
	const char *allowed;
	const char *called; /* in an error text; NULL: the name of the key */
} kinds[] = {
	[ENTRY_TEXT] = {"any text but an empty one"},
	[ENTRY_HOST] = {"names, addresses or folders, separated by commas, without blanks"},
	[ENTRY_PORT] = {"a number from 1 to 65535"},
	[ENTRY_PORTS] = {"a number from 1 to 65535, or one for each host"},
	[ENTRY_SIZE] = {"a whole number, at least -1"},
	[ENTRY_POOL_SIZE] = {"auto, or a whole number, at least -1"},
	[ENTRY_LIMIT] = {"a whole number, at least -1"},
	[ENTRY_TIME] = {"a number of seconds, or one with us, ms, s, min, h or d, or -1"},
	[ENTRY_WAIT] = {"a number of seconds, or one with us, ms, s, min, h or d, or -1"},
	[ENTRY_POOL_MODE] = {"session, transaction, statement", "pool mode"},
	[ENTRY_WAIT_ACTION] = {"disconnect, error"},
	[ENTRY_SESSION_STATE] = {"follow, error, warn, ignore"},
	[ENTRY_LOAD_BALANCE] = {"round-robin, disable, random, least-connections"},
	[ENTRY_TARGET_SESSION] =
		{"any, read-write, read-only, primary, standby, prefer-standby"},
	[ENTRY_STANDBY_LAG] =
		{"a size with B, kB, MB or GB, or a time with ms, s, min, h or d"},
};

const char *entry_allowed(const struct entry_key *key)
{
	return kinds[key->kind].allowed;
}

/* -1, "not set", becomes `for_negative`. */
static bool read_int(const char *value, int for_negative, int *out)
{
	long long number;

	if (!read_number(value, &number) || number < -1 || number > INT_MAX)
		return false;
	*out = number < 0 ? for_negative : (int)number;
	return true;
}

static bool read_pool_size(const char *value, int *out)
{
	if (!pool_size_is_auto(value))
		return read_int(value, POOL_SIZE_INHERIT, out);
	*out = POOL_SIZE_AUTO;
	return true;
}

/*
 * Plain numbers are truncated to whole seconds, as in PgBouncer; with a unit fractions count.
 */
static bool read_time(const char *value, usec_t for_negative, usec_t *out)
{
	const char last = value[strlen(value) - 1];
	const bool has_unit = (last | 0x20) >= 'a' && (last | 0x20) <= 'z';
	long long number;
	usec_t duration;

	if (value[0] == '-' && read_number(value, &number)) {
		*out = for_negative;
		return number == -1;
	}
	if (!text_to_duration(value, &duration))
		return false;
	*out = has_unit ? duration : duration - duration % USEC_PER_SEC;
	return true;
}

static bool read_port(const char *value, uint16_t *out)
{
	long long number;

	if (!read_number(value, &number) || number < 1 || number > UINT16_MAX)
		return false;
	*out = (uint16_t)number;
	return true;
}

/* The problems do not show the values, which are too long. */
static void check_host_sizes(struct entry *entry, const char *value)
{
	unsigned count = 0;
	size_t longest = 0;

	for (const char *at = value;; at++) {
		const size_t length = strcspn(at, ",");

		count++;
		if (length > longest)
			longest = length;
		at += length;
		if (*at == '\0')
			break;
	}
	if (count > DATABASE_HOSTS_LIMIT)
		entry_refuse(entry, "invalid host: %u hosts are too many: allowed are %d",
			count, DATABASE_HOSTS_LIMIT);
	if (longest > DATABASE_HOST_LIMIT)
		entry_refuse(entry, "invalid host: one of %zu bytes: allowed are %d", longest,
			DATABASE_HOST_LIMIT);
}

static bool read_host(struct entry *entry, const char *value, const char **out)
{
	const size_t length = strlen(value);

	*out = value;
	if (value[0] == ',' || value[length - 1] == ',' || strstr(value, ",,"))
		entry_refuse(entry, "empty item in host list: %s", value);
	check_host_sizes(entry, value);
	return true;
}

/* An empty item is the default. */
static bool read_ports(const char *value, const char **out)
{
	*out = value;
	for (const char *at = value;; at++) {
		char item[8];
		const size_t length = strcspn(at, ",");
		uint16_t port;

		if (length >= sizeof(item))
			return false;
		memcpy(item, at, length);
		item[length] = '\0';
		if (length > 0 && !read_port(item, &port))
			return false;
		at += length;
		if (*at == '\0')
			return true;
	}
}

/* Returns false if the value is not allowed. */
static bool read_value(
	struct entry *entry, const struct entry_key *key, const char *value, void *field)
{
	switch (key->kind) {
	case ENTRY_TEXT:
		*(const char **)field = value;
		return true;
	case ENTRY_HOST:
		return read_host(entry, value, field);
	case ENTRY_PORT:
		return read_port(value, field);
	case ENTRY_PORTS:
		return read_ports(value, field);
	case ENTRY_SIZE:
		return read_int(value, -1, field);
	case ENTRY_POOL_SIZE:
		return read_pool_size(value, field);
	case ENTRY_LIMIT:
		return read_int(value, 0, field);
	case ENTRY_TIME:
		return read_time(value, 0, field);
	case ENTRY_WAIT:
		return read_time(value, -1, field);
	case ENTRY_POOL_MODE:
		return pool_mode_of(value, field);
	case ENTRY_WAIT_ACTION:
		return wait_action_of(value, field);
	case ENTRY_SESSION_STATE:
		return session_state_of(value, field);
	case ENTRY_LOAD_BALANCE:
		return load_balance_of(value, field);
	case ENTRY_TARGET_SESSION:
		return target_session_of(value, field);
	case ENTRY_STANDBY_LAG:
		return standby_lag_of(value, field);
	}
	return false;
}

/* --- entries ------------------------------------------------------------------------------ */

static const struct entry_key *find_key(const struct entry_grammar *grammar, const char *name)
{
	for (size_t i = 0; i < grammar->key_count; i++) {
		if (strcmp(grammar->keys[i].name, name) == 0)
			return &grammar->keys[i];
	}
	return NULL;
}

static void read_key(struct entry *entry, const char *name, const char *value, void *fields)
{
	const struct entry_key *key = find_key(entry->grammar, name);

	if (!key) {
		refuse_key(entry, name);
		return;
	}
	if (!read_value(entry, key, value, (char *)fields + key->offset)) {
		const char *called = kinds[key->kind].called;

		entry_refuse(entry, "invalid %s: %s: allowed is %s%s", called ? called : name,
			value, entry_allowed(key),
			key->kind == ENTRY_POOL_SIZE ? pool_size_hint(value) : "");
	}
}

void entry_read(struct entry *entry, void *fields)
{
	struct connstr walk;
	enum connstr_result result;

	connstr_init(&walk, entry->text);
	while ((result = connstr_next(&walk)) == CONNSTR_PAIR)
		read_key(entry, walk.key, walk.value, fields);
	if (result == CONNSTR_MALFORMED)
		entry_refuse(entry, "%s", entry->grammar->malformed);
}

void *entry_finish(struct entry *entry, const void *fields)
{
	void *packed;

	if (entry->wrong)
		return NULL;
	packed = entry_pack(entry->grammar, fields);
	if (!packed)
		problems_add(entry->problems, PROBLEM_ERROR, entry->place->file,
			entry->place->line, "out of memory");
	return packed;
}

/* --- packing ------------------------------------------------------------------------------ */

static bool is_text(const struct entry_key *key)
{
	return key->kind == ENTRY_TEXT || key->kind == ENTRY_HOST || key->kind == ENTRY_PORTS;
}

static size_t text_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

/* Copy the text to `*place` and advance it. */
static void pack_text(const char **text, char **place)
{
	const size_t size = text_size(*text);

	if (size == 0)
		return;
	memcpy(*place, *text, size);
	*text = *place;
	*place += size;
}

static const char **text_at(const void *fields, const struct entry_key *key)
{
	return (const char **)((char *)fields + key->offset);
}

void *entry_pack(const struct entry_grammar *grammar, const void *fields)
{
	size_t size = grammar->size + text_size(*(const char *const *)fields);
	char *packed, *place;

	for (size_t i = 0; i < grammar->key_count; i++) {
		if (is_text(&grammar->keys[i]))
			size += text_size(*text_at(fields, &grammar->keys[i]));
	}
	packed = malloc(size);
	if (!packed)
		return NULL;
	memcpy(packed, fields, grammar->size);
	place = packed + grammar->size;
	pack_text((const char **)packed, &place);
	for (size_t i = 0; i < grammar->key_count; i++) {
		if (is_text(&grammar->keys[i]))
			pack_text(text_at(packed, &grammar->keys[i]), &place);
	}
	return packed;
}

/* --- comparing ---------------------------------------------------------------------------- */

static size_t value_size(const struct entry_key *key)
{
	switch (key->kind) {
	case ENTRY_TEXT:
	case ENTRY_HOST:
	case ENTRY_PORTS:
		return sizeof(const char *);
	case ENTRY_PORT:
		return sizeof(uint16_t);
	case ENTRY_SIZE:
	case ENTRY_POOL_SIZE:
	case ENTRY_LIMIT:
		return sizeof(int);
	case ENTRY_TIME:
	case ENTRY_WAIT:
		return sizeof(usec_t);
	case ENTRY_POOL_MODE:
		return sizeof(enum pool_mode);
	case ENTRY_WAIT_ACTION:
		return sizeof(enum wait_action);
	case ENTRY_SESSION_STATE:
		return sizeof(enum session_state);
	case ENTRY_LOAD_BALANCE:
		return sizeof(enum load_balance);
	case ENTRY_TARGET_SESSION:
		return sizeof(enum target_session);
	case ENTRY_STANDBY_LAG:
		return sizeof(standby_lag);
	}
	return 0;
}

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool entry_same(const struct entry_grammar *grammar, const void *a, const void *b)
{
	for (size_t i = 0; i < grammar->key_count; i++) {
		const struct entry_key *key = &grammar->keys[i];

		if (is_text(key) ? !is_same_text(*text_at(a, key), *text_at(b, key))
				 : memcmp((const char *)a + key->offset,
					   (const char *)b + key->offset, value_size(key)) != 0)
			return false;
	}
	return true;
}
