/* SPDX-License-Identifier: ISC */
/* Messages without a letter: identify, walk through, build. */
#include "wire/startup.h"

#include <string.h>
#include <strings.h>

#include "wire/switches.h"
#include "wire/writer.h"

/* Parameters with this prefix are protocol options, not settings. */
#define PROTOCOL_OPTION_PREFIX "_pq_."

static enum startup_kind kind_of(uint32_t code)
{
	switch (code) {
	case SSL_REQUEST_CODE:
		return STARTUP_SSL_REQUEST;
	case GSSENC_REQUEST_CODE:
		return STARTUP_GSSENC_REQUEST;
	case CANCEL_REQUEST_CODE:
		return STARTUP_CANCEL;
	case PEER_QUESTION_CODE:
		return STARTUP_PEER_QUESTION;
	case PROTOCOL_2_0:
		return STARTUP_PROTOCOL_2;
	default:
		return code >> 16 == PROTOCOL_3_0 >> 16 ? STARTUP_LOGIN : STARTUP_MALFORMED;
	}
}

enum startup_kind startup_peek(const uint8_t *data, size_t available, size_t *total)
{
	struct reader reader;
	uint32_t length;
	enum startup_kind kind;

	*total = 0;
	if (available < STARTUP_HEADER_SIZE)
		return STARTUP_INCOMPLETE;
	reader_init(&reader, data, available);
	length = reader_int32(&reader);
	kind = kind_of(reader_int32(&reader));
	if (length < STARTUP_HEADER_SIZE || length > STARTUP_TOTAL_MAX ||
		kind == STARTUP_MALFORMED)
		return STARTUP_MALFORMED;
	*total = length;
	return length <= available ? kind : STARTUP_INCOMPLETE;
}

/* ---- Login ------------------------------------------------------------------------------ */

/* Whether `word`, letter case ignored, is a prefix of `whole` of at least `least` letters. */
static bool abbreviates(const char *word, const char *whole, size_t least)
{
	const size_t length = strlen(word);

	return length >= least && strncasecmp(word, whole, length) == 0;
}

/* `o` alone could also mean `off`. strncasecmp() stops at the end of the whole word. */
static bool means_true(const char *word)
{
	return abbreviates(word, "true", 1) || abbreviates(word, "yes", 1) ||
		abbreviates(word, "on", 2) || strcmp(word, "1") == 0;
}

enum startup_replication startup_replication_word(const char *value)
{
	if (strcmp(value, "database") == 0)
		return REPLICATION_LOGICAL;
	return means_true(value) ? REPLICATION_PHYSICAL : REPLICATION_NONE;
}

enum meaning {
	MEANS_USER,
	MEANS_DATABASE,
	MEANS_OPTIONS,
	MEANS_REPLICATION,
	MEANS_PROTOCOL,
	MEANS_SETTING
};

static enum meaning meaning_of(const char *name)
{
	static const struct {
		const char *name;
		enum meaning meaning;
	} known[] = {
		{"user", MEANS_USER},
		{"database", MEANS_DATABASE},
		{"options", MEANS_OPTIONS},
		{"replication", MEANS_REPLICATION},
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (name[0] == known[i].name[0] && strcmp(name, known[i].name) == 0)
			return known[i].meaning;
	}
	if (name[0] == PROTOCOL_OPTION_PREFIX[0] &&
		strncmp(name, PROTOCOL_OPTION_PREFIX, strlen(PROTOCOL_OPTION_PREFIX)) == 0)
		return MEANS_PROTOCOL;
	return MEANS_SETTING;
}

static void read_parameter(struct startup_login *login, const char *name, const char *value)
{
	switch (meaning_of(name)) {
	case MEANS_USER:
		login->user = value;
		break;
	case MEANS_DATABASE:
		login->database = value;
		break;
	case MEANS_OPTIONS:
		login->options = value;
		break;
	case MEANS_REPLICATION:
		login->replication = startup_replication_word(value);
		break;
	case MEANS_PROTOCOL:
		login->unknown_options++;
		break;
	case MEANS_SETTING:
		break;
	}
}

static uint32_t version_of(const uint8_t *data, size_t total)
{
	struct reader reader;

	reader_init(&reader, data, total);
	reader_int32(&reader);
	return reader_int32(&reader);
}

enum startup_result startup_read(const uint8_t *data, size_t total, struct startup_login *login)
{
	struct startup_login found = {.version = version_of(data, total)};
	struct startup_walk walk;
	const char *name, *value;
	enum startup_step step;

	startup_walk_begin(&walk, data, total);
	while ((step = startup_walk_next(&walk, &name, &value)) == STARTUP_PARAMETER)
		read_parameter(&found, name, value);
	if (step != STARTUP_END)
		return STARTUP_BAD_LAYOUT;

	if (found.user != NULL && found.user[0] == '\0')
		found.user = NULL;
	if (found.database == NULL || found.database[0] == '\0')
		found.database = found.user;
	*login = found;
	return found.user != NULL ? STARTUP_GOOD : STARTUP_NO_USER;
}

/* ---- Parameters in order ---------------------------------------------------------------- */

void startup_walk_begin(struct startup_walk *walk, const uint8_t *data, size_t total)
{
	reader_init(&walk->reader, data, total);
	reader_bytes(&walk->reader, STARTUP_HEADER_SIZE);
}

enum startup_step startup_walk_next(
	struct startup_walk *walk, const char **name, const char **value)
{
	const char *first = reader_string(&walk->reader), *second;

	if (first == NULL)
		return STARTUP_BROKEN;
	if (first[0] == '\0')
		return reader_done(&walk->reader) ? STARTUP_END : STARTUP_BROKEN;
	second = reader_string(&walk->reader);
	if (second == NULL)
		return STARTUP_BROKEN;
	*name = first;
	*value = second;
	return STARTUP_PARAMETER;
}

void options_walk_begin(struct options_walk *walk, const char *options)
{
	walk->at = options;
	buffer_init(&walk->text);
}

void options_walk_end(struct options_walk *walk)
{
	buffer_free(&walk->text);
}

/* Skip the switch that introduces a setting; returns NULL if there is none or another one. */
static const char *skip_switch(const char *at)
{
	if (at[0] != '-')
		return NULL;
	if (at[1] == 'c')
		return switches_skip_blanks(at + 2);
	return at[1] == '-' ? at + 2 : NULL;
}

enum startup_step options_walk_next(
	struct options_walk *walk, const char **name, const char **value)
{
	const char *at = switches_skip_blanks(walk->at);
	char *text, *equals;

	if (*at == '\0')
		return STARTUP_END;
	at = skip_switch(at);
	if (at == NULL)
		return STARTUP_BROKEN;
	walk->at = switches_copy_word(&walk->text, at);
	if (walk->text.failed)
		return STARTUP_NO_MEMORY;

	text = (char *)walk->text.data;
	equals = strchr(text, '=');
	if (equals == NULL || equals == text)
		return STARTUP_BROKEN;
	*equals = '\0';
	*name = text;
	*value = equals + 1;
	return STARTUP_PARAMETER;
}

void startup_settings_begin(struct startup_settings *walk, const struct startup_login *login,
	const uint8_t *data, size_t total)
{
	walk->login = login;
	walk->in_options = false;
	startup_walk_begin(&walk->parameters, data, total);
	options_walk_begin(&walk->options, "");
}

void startup_settings_end(struct startup_settings *walk)
{
	options_walk_end(&walk->options);
}

/*
 * Only the last `options` parameter counts; the options of replication are passed to the
 * server.
 */
static bool options_count(const struct startup_settings *walk, const char *value)
{
	return value == walk->login->options && walk->login->replication == REPLICATION_NONE;
}

enum startup_step startup_settings_next(
	struct startup_settings *walk, const char **name, const char **value)
{
	enum startup_step step;

	for (;;) {
		if (walk->in_options) {
			step = options_walk_next(&walk->options, name, value);
			if (step != STARTUP_END)
				return step;
			walk->in_options = false;
		}
		step = startup_walk_next(&walk->parameters, name, value);
		if (step != STARTUP_PARAMETER)
			return step;
		switch (meaning_of(*name)) {
		case MEANS_SETTING:
			return STARTUP_PARAMETER;
		case MEANS_OPTIONS:
			if (options_count(walk, *value)) {
				walk->options.at = *value;
				walk->in_options = true;
			}
			break;
		case MEANS_USER:
		case MEANS_DATABASE:
		case MEANS_REPLICATION:
		case MEANS_PROTOCOL:
			break;
		}
	}
}

/* ---- Version ---------------------------------------------------------------------------- */

uint32_t startup_version_spoken(uint32_t asked)
{
	/* Version 3.1 does not exist. */
	return asked >= PROTOCOL_3_2 ? PROTOCOL_3_2 : PROTOCOL_3_0;
}

/* Append the names of the protocol options, each with its NUL. */
static void append_unknown_options(struct buffer *buffer, const uint8_t *data, size_t total)
{
	struct startup_walk walk;
	const char *name, *value;

	startup_walk_begin(&walk, data, total);
	while (startup_walk_next(&walk, &name, &value) == STARTUP_PARAMETER) {
		if (meaning_of(name) == MEANS_PROTOCOL)
			writer_string(buffer, name);
	}
}

bool startup_write_negotiation(struct buffer *buffer, const struct startup_login *login,
	const uint8_t *data, size_t total)
{
	const uint32_t spoken = startup_version_spoken(login->version);
	size_t mark;

	if (spoken == login->version && login->unknown_options == 0)
		return false;
	mark = writer_begin(buffer, PQ_NEGOTIATE_PROTOCOL_VERSION);
	writer_int32(buffer, spoken);
	writer_int32(buffer, login->unknown_options);
	append_unknown_options(buffer, data, total);
	writer_end(buffer, mark);
	return true;
}

/* ---- Cancel ----------------------------------------------------------------------------- */

const uint8_t *startup_cancel_key(const uint8_t *data, size_t total, size_t *length)
{
	const size_t size = total - STARTUP_HEADER_SIZE;

	if (total < STARTUP_HEADER_SIZE + STARTUP_KEY_MIN || size > STARTUP_KEY_MAX)
		return NULL;
	*length = size;
	return data + STARTUP_HEADER_SIZE;
}

/* ---- To servers ------------------------------------------------------------------------- */

size_t startup_begin(struct buffer *buffer, uint32_t version)
{
	const size_t mark = writer_begin(buffer, 0);

	writer_int32(buffer, version);
	return mark;
}

void startup_end(struct buffer *buffer, size_t mark)
{
	writer_byte(buffer, 0);
	writer_end(buffer, mark);
}

void startup_write_request(struct buffer *buffer, uint32_t code)
{
	const size_t mark = writer_begin(buffer, 0);

	writer_int32(buffer, code);
	writer_end(buffer, mark);
}

void startup_write_cancel(struct buffer *buffer, const void *key, size_t length)
{
	const size_t mark = writer_begin(buffer, 0);

	writer_int32(buffer, CANCEL_REQUEST_CODE);
	writer_bytes(buffer, key, length);
	writer_end(buffer, mark);
}
