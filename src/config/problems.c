/* SPDX-License-Identifier: ISC */
#include "config/problems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *format_text(const char *format, va_list arguments)
	__attribute__((format(printf, 1, 0)));
static char *format_text(const char *format, va_list arguments)
{
	char *text;

	return vasprintf(&text, format, arguments) < 0 ? NULL : text;
}

static char *log_line(const struct problem *problem)
{
	char *text;
	int length;

	if (problem->line > 0)
		length = asprintf(
			&text, "%s (%s:%u)", problem->text, problem->file, problem->line);
	else
		length = asprintf(&text, "%s", problem->text);
	return length < 0 ? NULL : text;
}

static void free_problem(struct problem *problem)
{
	free((char *)problem->file);
	free((char *)problem->text);
	for (unsigned i = 0; i < PROBLEM_LOG_LINES; i++)
		free((char *)problem->log[i]);
}

static bool make_room(struct problems *problems)
{
	const size_t capacity = problems->capacity ? problems->capacity * 2 : 16;
	struct problem *list;

	if (problems->count >= PROBLEMS_KEPT)
		return false;
	if (problems->count < problems->capacity)
		return true;
	list = realloc(problems->list, capacity * sizeof(*list));
	if (!list)
		return false;
	problems->list = list;
	problems->capacity = capacity;
	return true;
}

static void count(struct problems *problems, enum problem_severity severity)
{
	switch (severity) {
	case PROBLEM_ERROR:
		problems->errors++;
		break;
	case PROBLEM_SKIPPED:
		problems->skipped++;
		break;
	case PROBLEM_WARNING:
		problems->warnings++;
		break;
	}
}

/* Takes ownership of the text. */
static void add(struct problems *problems, enum problem_severity severity, const char *file,
	unsigned line, char *text)
{
	struct problem problem = {.severity = severity, .line = line, .text = text};

	problems->last_kept = false;
	count(problems, severity);
	problem.file = strdup(file);
	if (problem.file && problem.text)
		problem.log[0] = log_line(&problem);
	if (!problem.log[0] || !make_room(problems)) {
		free_problem(&problem);
		return;
	}
	problems->list[problems->count++] = problem;
	problems->last_kept = true;
}

void problems_add(struct problems *problems, enum problem_severity severity, const char *file,
	unsigned line, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	add(problems, severity, file, line, text);
}

void problems_log_as(struct problems *problems, const char *format, ...)
{
	struct problem *problem;
	va_list arguments;
	char *text;

	if (!problems->last_kept)
		return;
	problem = &problems->list[problems->count - 1];
	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	if (!text)
		return;
	if (!problem->reworded) {
		free((char *)problem->log[0]);
		problem->log[0] = text;
		problem->reworded = true;
	} else {
		free((char *)problem->log[1]);
		problem->log[1] = text;
	}
}

size_t problems_errors(const struct problems *problems)
{
	return problems->errors;
}

const struct problem *problems_next(const struct problems *problems, const struct problem *last)
{
	const size_t index = last ? (size_t)(last - problems->list) + 1 : 0;

	return index < problems->count ? &problems->list[index] : NULL;
}

void problems_free(struct problems *problems)
{
	for (size_t i = 0; i < problems->count; i++)
		free_problem(&problems->list[i]);
	free(problems->list);
	*problems = (struct problems){0};
}
