/* SPDX-License-Identifier: ISC */
/*
 * Configurations of other poolers, with any content: each of them becomes one that can be read, or
 * leaves an error. The first byte selects the pooler.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/snapshot.h"
#include "setup/convert/own_file.h"
#include "setup/convert/poolers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

typedef bool converter(struct conversion *conversion, const char *text, size_t length);

/*
 * Each value was checked when it was set, so only what concerns several values may be wrong in the
 * whole.
 */
static void check_result(const struct buffer *text)
{
	struct problems problems = {0};
	const struct problem *problem = NULL;

	snapshot_unref(snapshot_parse(
		"result", (const char *)text->data, text->length, NULL, &problems));
	while ((problem = problems_next(&problems, problem)) != NULL)
		require(problem->severity != PROBLEM_ERROR ||
			!strstr(problem->text, "syntax error"));
	problems_free(&problems);
}

static void convert(converter *pooler, const char *text, size_t length)
{
	struct source source;
	struct draft *draft = draft_new();
	/* No file lies beside this one. */
	struct conversion conversion = {
		.source = &source,
		.draft = draft,
		.file = "/nowhere/fuzz",
		.rules_path = "rules",
	};
	struct buffer ini = {0};

	require(draft != NULL);
	source_init(&source);
	if (pooler(&conversion, text, length)) {
		require(draft_write(draft, DRAFT_SHOW_SECRETS, &ini));
		check_result(&ini);
	} else {
		require(draft_findings(draft)->errors > 0);
	}
	buffer_free(&ini);
	buffer_free(&conversion.hba);
	buffer_free(&conversion.users_wanted);
	source_free(&source);
	draft_free(draft);
}

static void convert_own(const char *text, size_t length)
{
	struct problems findings = {0};
	struct buffer ini = {0};

	/* A dropped header behind which a pair stands changes the section of the next lines. */
	require(own_file_convert("fuzz.ini", text, length, length % 2 == 1, &ini, &findings) ==
		(findings.errors == 0));
	buffer_free(&ini);
	problems_free(&findings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;

	if (size == 0)
		return 0;
	switch (data[0]) {
	case 'o':
		convert(odyssey_convert, text, size - 1);
		break;
	case 'a':
		convert(pgagroal_convert, text, size - 1);
		break;
	case 'c':
		convert(pgcat_convert, text, size - 1);
		break;
	default:
		convert_own(text, size - 1);
		break;
	}
	return 0;
}
