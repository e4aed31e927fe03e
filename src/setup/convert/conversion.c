/* SPDX-License-Identifier: ISC */
#include "setup/convert/conversion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* --- findings ----------------------------------------------------------------------------- */

/* Texts quote names of the file, which may have line ends. */
enum { NAME_SHOWN = 64, TEXT_SHOWN = 512 };

static bool is_listed(
	const struct problems *findings, const struct source_node *node, const char *text)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct problem *finding = &findings->list[i];

		if (finding->line == node->line && strcmp(finding->text, text) == 0 &&
			strcmp(finding->file, node->file) == 0)
			return true;
	}
	return false;
}

/* The same line may become several of ours: what it loses is listed once. */
static void list(struct conversion *conversion, const struct source_node *node,
	enum problem_severity severity, const char *text)
{
	if (is_listed(draft_findings(conversion->draft), node, text))
		return;
	problems_add(draft_findings(conversion->draft), severity, node->file, node->line, "%s",
		text);
}

static void list_format(struct conversion *conversion, const struct source_node *node,
	enum problem_severity severity, const char *format, va_list arguments)
	__attribute__((format(printf, 4, 0)));
static void list_format(struct conversion *conversion, const struct source_node *node,
	enum problem_severity severity, const char *format, va_list arguments)
{
	char raw[TEXT_SHOWN], text[TEXT_SHOWN], name[NAME_SHOWN];
	char line[TEXT_SHOWN + NAME_SHOWN + 8];

	vsnprintf(raw, sizeof(raw), format, arguments);
	text_escape(text, sizeof(text), raw, strlen(raw));
	if (!node->name) {
		list(conversion, node, severity, text);
		return;
	}
	text_escape(name, sizeof(name), node->name, strlen(node->name));
	snprintf(line, sizeof(line), "%s: %s", name, text);
	list(conversion, node, severity, line);
}

void conversion_lose(
	struct conversion *conversion, const struct source_node *node, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	list_format(conversion, node, PROBLEM_SKIPPED, format, arguments);
	va_end(arguments);
}

void conversion_note(
	struct conversion *conversion, const struct source_node *node, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	list_format(conversion, node, PROBLEM_WARNING, format, arguments);
	va_end(arguments);
}

const char *conversion_text(struct conversion *conversion, const char *format, ...)
{
	va_list arguments;
	const char *copy;
	int length;
	char *text;

	/* The conversion ends in vain: it takes no more time. */
	if (conversion->failed)
		return "";
	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0) {
		conversion->failed = true;
		return "";
	}
	copy = source_copy(conversion->source, text, (size_t)length);
	explicit_bzero(text, (size_t)length);
	free(text);
	if (!copy)
		conversion->failed = true;
	return copy ? copy : "";
}

/* --- values into the draft ---------------------------------------------------------------- */

bool conversion_set(struct conversion *conversion, const struct source_node *node,
	const char *name, const char *value)
{
	const char *present = draft_get(conversion->draft, name);
	char why[256];

	if (present && strcmp(present, value) == 0)
		return true;
	if (present)
		conversion_lose(conversion, node,
			"%s counts for all and is %s already, by another line", name, present);
	else if (!draft_set(conversion->draft, name, value, why, sizeof(why)))
		conversion_lose(conversion, node, "not possible as %s: %s", name, why);
	else
		return true;
	return false;
}

bool conversion_put(struct conversion *conversion, const struct source_node *node,
	enum draft_section section, const char *entry, const char *key, const char *value)
{
	const char *present = draft_key(conversion->draft, section, entry, key);
	char why[256];

	if (present && strcmp(present, value) == 0)
		return true;
	if (present)
		conversion_lose(conversion, node,
			"another line gives %s for %s %s already, and it can have one only",
			key, section == DRAFT_USERS ? "user" : "database", entry);
	else if (!draft_put(conversion->draft, section, entry, key, value, why, sizeof(why)))
		conversion_lose(conversion, node, "not possible as %s: %s", key, why);
	else
		return true;
	return false;
}

bool conversion_add_user(struct conversion *conversion, const struct source_node *node,
	const char *name, const char *secret)
{
	const char *present = draft_user_secret(conversion->draft, name);
	char why[256];

	if (present && (secret[0] == '\0' || strcmp(present, secret) == 0))
		return true;
	if (present && present[0] != '\0')
		conversion_lose(conversion, node,
			"user %s has another password in another line; one counts in all databases",
			name);
	else if (!draft_add_user(conversion->draft, name, secret, why, sizeof(why)))
		conversion_lose(conversion, node, "user %s: %s", name, why);
	else
		return true;
	return false;
}
