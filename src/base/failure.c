/* SPDX-License-Identifier: ISC */
/* The table of reasons, and failures made from its rows. */
#include "base/failure.h"

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

struct row {
	const char *text;
	const char *sqlstate;
	enum log_level level;
};

#define REASON(name, text, sqlstate, level, ...) [REASON_##name] = {text, sqlstate, level},
static const struct row rows[REASON_COUNT] = {
#include "base/reasons.def"
};
#undef REASON

/* Position of the argument in a row's text. */
static const char placeholder[] = "%s";

static const struct row *row_of(enum reason reason)
{
	CHECK((unsigned int)reason < REASON_COUNT);
	return &rows[reason];
}

static const char *place_of_argument(enum reason reason)
{
	return strstr(row_of(reason)->text, placeholder);
}

/* Append `length` bytes to the text, as many as fit. */
static void append(char out[FAILURE_TEXT_SIZE], const char *text, size_t length)
{
	size_t used = strlen(out);
	size_t kept = text_utf8_cut(text, length, FAILURE_TEXT_SIZE - 1 - used);

	memcpy(out + used, text, kept);
	out[used + kept] = '\0';
}

/* `place`: position of the argument in the row's text; NULL: it takes none. */
static struct failure fill_in(enum reason reason, const char *place, const char *argument)
{
	const struct row *row = row_of(reason);
	struct failure failure = {.reason = reason};

	(void)text_copy(failure.sqlstate, sizeof(failure.sqlstate), row->sqlstate);
	if (place == NULL) {
		append(failure.text, row->text, strlen(row->text));
		return failure;
	}
	append(failure.text, row->text, (size_t)(place - row->text));
	append(failure.text, argument, strlen(argument));
	place += strlen(placeholder);
	append(failure.text, place, strlen(place));
	return failure;
}

struct failure failure_of(enum reason reason, ...)
{
	const char *place = place_of_argument(reason), *argument = NULL;
	va_list arguments;

	if (place != NULL) {
		va_start(arguments, reason);
		argument = va_arg(arguments, const char *);
		va_end(arguments);
	}
	return fill_in(reason, place, argument);
}

static bool is_sqlstate(const char *text)
{
	return strlen(text) == 5 && strspn(text, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5;
}

struct failure failure_from_server(const char *text, const char *sqlstate)
{
	struct failure failure =
		fill_in(REASON_SERVER_ERROR, place_of_argument(REASON_SERVER_ERROR),
			text != NULL && *text != '\0' ? text : "server login failed");

	if (sqlstate != NULL && is_sqlstate(sqlstate))
		(void)text_copy(failure.sqlstate, sizeof(failure.sqlstate), sqlstate);
	return failure;
}

const char *reason_text(enum reason reason)
{
	return row_of(reason)->text;
}

const char *reason_sqlstate(enum reason reason)
{
	return row_of(reason)->sqlstate;
}

enum log_level reason_level(enum reason reason)
{
	return row_of(reason)->level;
}

bool reason_has_argument(enum reason reason)
{
	return place_of_argument(reason) != NULL;
}
