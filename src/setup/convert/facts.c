/* SPDX-License-Identifier: ISC */
#include "setup/convert/facts.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"

/* --- values of facts ---------------------------------------------------------------------- */

bool fact_is_on(const char *text)
{
	static const char *const words[] = {"yes", "on", "true", "1"};

	for (size_t i = 0; text && i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(text, words[i]) == 0)
			return true;
	}
	return false;
}

static bool is_off(const char *text)
{
	static const char *const words[] = {"no", "off", "false", "0"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(text, words[i]) == 0)
			return true;
	}
	return false;
}

static bool is_number(const char *text)
{
	const char *digits = text + (text[0] == '-');

	return digits[0] != '\0' && strlen(digits) <= 18 &&
		digits[strspn(digits, "0123456789")] == '\0';
}

/* A time with the unit of a plain number; units of pgagroal. NULL: it is none. */
static const char *time_value(
	struct conversion *conversion, const char *text, const char *unit, bool has_units)
{
	static const struct {
		const char *theirs, *ours;
		unsigned times;
	} units[] = {
		{"ms", "ms", 1},
		{"s", "s", 1},
		{"m", "min", 1},
		{"h", "h", 1},
		{"d", "d", 1},
		{"w", "d", 7},
	};
	const size_t digits = strspn(text, "0123456789");
	unsigned long long number;

	if (is_number(text)) {
		number = strtoull(text, NULL, 10);
		if (text[0] == '-' || number == 0)
			return "0";
		/* Seconds are what our plain numbers are. */
		return strcmp(unit, "s") == 0 ? conversion_text(conversion, "%llu", number)
			: number % 1000 == 0
			? conversion_text(conversion, "%llu", number / 1000)
			: conversion_text(conversion, "%llums", number);
	}
	if (!has_units || digits == 0 || digits > 12)
		return NULL;
	number = strtoull(text, NULL, 10);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcasecmp(text + digits, units[i].theirs) == 0)
			return number == 0 ? "0"
					   : conversion_text(conversion, "%llu%s",
						     number * units[i].times, units[i].ours);
	}
	return NULL;
}

/* Our value; NULL if theirs is none of this kind. */
static const char *value_of(
	struct conversion *conversion, const struct fact *fact, const char *text)
{
	switch (fact->value) {
	case FACT_TEXT:
		return text;
	case FACT_NUMBER:
		return is_number(text) ? text : NULL;
	case FACT_FLAG:
		return fact_is_on(text) ? "1" : is_off(text) ? "0" : NULL;
	case FACT_SECONDS:
		return time_value(conversion, text, "s", false);
	case FACT_MILLISECONDS:
		return time_value(conversion, text, "ms", false);
	case FACT_TIME:
		return time_value(conversion, text, "s", true);
	case FACT_PART:
	case FACT_NONE:
	case FACT_ALWAYS:
	case FACT_NEVER:
		break;
	}
	return NULL;
}

/* Elsewhere 0 is no limit of the age; here it means that each connection is used once. */
static const char *lifetime_of(
	struct conversion *conversion, const struct source_node *node, const char *value)
{
	if (strcmp(value, "0") != 0)
		return value;
	conversion_note(conversion, node,
		"no limit there; server_lifetime is a long one here, since its 0 means one use");
	return "3650d";
}

static void convert_value(struct conversion *conversion, const struct fact *fact,
	const struct source_node *node, struct route *route)
{
	const char *value = node->text && node->kind <= SOURCE_STRING && !node->arguments
		? value_of(conversion, fact, node->text)
		: NULL;

	if (!value) {
		conversion_lose(conversion, node, "its value is not of the kind that is known");
		return;
	}
	if (fact->target.setting && strcmp(fact->target.setting, "server_lifetime") == 0)
		value = lifetime_of(conversion, node, value);
	/* No limit there, and "as the setting" here, which is no limit unless it is set. */
	if (route && !fact->target.database && fact->target.user && strcmp(value, "0") == 0)
		return;
	if (route)
		route_add_key(conversion, route, &fact->target, node, value);
	else if (!conversion_set(conversion, node, fact->target.setting, value))
		return;
	if (fact->remark)
		conversion_note(conversion, node, "%s", fact->remark);
}

static void apply_fact(struct conversion *conversion, const struct fact *fact,
	const struct source_node *node, struct route *route)
{
	const bool off = node->text && is_off(node->text);

	switch (fact->value) {
	case FACT_PART:
		break;
	case FACT_NONE:
		conversion_lose(conversion, node, "no counterpart: %s", fact->remark);
		break;
	case FACT_ALWAYS:
		if (off)
			conversion_lose(
				conversion, node, "cannot be turned off: %s", fact->remark);
		break;
	case FACT_NEVER:
		if (!off)
			conversion_lose(conversion, node, "no counterpart: %s", fact->remark);
		break;
	case FACT_TEXT:
	case FACT_NUMBER:
	case FACT_FLAG:
	case FACT_SECONDS:
	case FACT_MILLISECONDS:
	case FACT_TIME:
		convert_value(conversion, fact, node, route);
		break;
	}
}

/* --- tables ------------------------------------------------------------------------------- */

static void refuse_unknown(struct conversion *conversion, const struct facts *facts,
	unsigned scope, const struct source_node *node)
{
	struct nearest nearest = {.asked = node->name};

	for (size_t i = 0; i < facts->count; i++) {
		if (facts->rows[i].scope == scope)
			nearest_consider(&nearest, facts->rows[i].name);
	}
	if (nearest.found)
		conversion_lose(conversion, node, "unknown: is it %s?", nearest.found);
	else
		conversion_lose(conversion, node,
			"unknown: not among the documented keys of %s", facts->pooler);
}

void facts_apply(struct conversion *conversion, const struct facts *facts, unsigned scope,
	const struct source_node *parent, struct route *route)
{
	for (const struct source_node *node = parent ? parent->first : NULL; node;
		node = node->next) {
		const struct fact *fact = NULL;

		for (size_t i = 0; node->name && !fact && i < facts->count; i++) {
			if (facts->rows[i].scope == scope &&
				strcmp(facts->rows[i].name, node->name) == 0)
				fact = &facts->rows[i];
		}
		if (fact)
			apply_fact(conversion, fact, node, route);
		else if (node->name)
			refuse_unknown(conversion, facts, scope, node);
	}
}
