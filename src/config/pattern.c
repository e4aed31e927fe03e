/* SPDX-License-Identifier: ISC */
#include "config/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Of one match; typical expressions need a few dozen. */
	STEPS_MAX = 100000,
	DEPTH_MAX = 1000,
	HEAP_MAX = 1024, /* kB */
	NESTING_MAX = 50, /* of groups in an expression */
};

struct pattern {
	pcre2_code *code;
	pcre2_match_context *limits;
	uint32_t groups;
};

static pcre2_code *compile(const char *text, char *why, size_t size)
{
	const uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOTALL |
		PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	pcre2_code *code = NULL;
	PCRE2_SIZE at = 0;
	int error = 0;

	snprintf(why, size, "out of memory");
	if (!context)
		return NULL;
	pcre2_set_max_pattern_length(context, PATTERN_LENGTH_MAX);
	pcre2_set_parens_nest_limit(context, NESTING_MAX);
	code = pcre2_compile(
		(PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, options, &error, &at, context);
	if (!code)
		pcre2_get_error_message(error, (PCRE2_UCHAR *)why, size);
	pcre2_compile_context_free(context);
	return code;
}

struct pattern *pattern_new(const char *text, char *why, size_t size)
{
	struct pattern *pattern = calloc(1, sizeof(*pattern));

	snprintf(why, size, "out of memory");
	if (!pattern)
		return NULL;
	pattern->code = compile(text, why, size);
	pattern->limits = pcre2_match_context_create(NULL);
	if (!pattern->code || !pattern->limits) {
		pattern_free(pattern);
		return NULL;
	}
	pcre2_set_match_limit(pattern->limits, STEPS_MAX);
	pcre2_set_depth_limit(pattern->limits, DEPTH_MAX);
	pcre2_set_heap_limit(pattern->limits, HEAP_MAX);
	pcre2_pattern_info(pattern->code, PCRE2_INFO_CAPTURECOUNT, &pattern->groups);
	return pattern;
}

void pattern_free(struct pattern *pattern)
{
	if (!pattern)
		return;
	pcre2_match_context_free(pattern->limits);
	pcre2_code_free(pattern->code);
	free(pattern);
}

unsigned pattern_groups(const struct pattern *pattern)
{
	return pattern->groups;
}

bool pattern_matches(const struct pattern *pattern, const char *text, const char **group,
	size_t *group_length)
{
	/*
	 * Room for the whole match and the first group; further groups are dropped without an
	 * error.
	 */
	pcre2_match_data *match = pcre2_match_data_create(2, NULL);
	const PCRE2_SIZE *bounds;
	int found;

	*group = NULL;
	*group_length = 0;
	if (!match)
		return false;
	found = pcre2_match(
		pattern->code, (PCRE2_SPTR)text, strlen(text), 0, 0, match, pattern->limits);
	bounds = pcre2_get_ovector_pointer(match);
	if ((found == 0 || found > 1) && bounds[2] != PCRE2_UNSET) {
		*group = text + bounds[2];
		*group_length = bounds[3] - bounds[2];
	}
	pcre2_match_data_free(match);
	return found >= 0;
}
