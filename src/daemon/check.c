/* SPDX-License-Identifier: ISC */
#include "daemon/check.h"

#include <stdio.h>

#include "base/log.h"
#include "daemon/surroundings.h"

static void log_problem(const struct problem *problem)
{
	const enum log_level level =
		problem->severity == PROBLEM_WARNING ? LEVEL_WARNING : LEVEL_ERROR;

	for (unsigned i = 0; i < PROBLEM_LOG_LINES && problem->log[i]; i++)
		log_write(level, "%s", problem->log[i]);
}

void check_log_problems(const struct problems *problems)
{
	const struct problem *problem = NULL;

	while ((problem = problems_next(problems, problem)) != NULL)
		log_problem(problem);
}

/* --- --check ------------------------------------------------------------------------------ */

static void print_problem(const struct problem *problem)
{
	const char *mark = problem->severity == PROBLEM_WARNING ? "warning: " : "";

	if (problem->line > 0)
		printf("%s:%u: %s%s\n", problem->file, problem->line, mark, problem->text);
	else
		printf("%s: %s%s\n", problem->file, mark, problem->text);
}

bool check_configuration(const struct options *options)
{
	struct problems problems = {0};
	const struct presets presets = {options->verbose, options->presets};
	struct snapshot *config = snapshot_start(options->config, &presets, &problems);
	const struct problem *problem = NULL;
	size_t mistakes, found;

	if (config)
		surroundings_check(options, config, &problems);
	while ((problem = problems_next(&problems, problem)) != NULL)
		print_problem(problem);
	mistakes = problems.errors + problems.skipped;
	found = mistakes + problems.warnings;
	if (found > problems.count)
		printf("%s: and %zu more\n", options->config, found - problems.count);
	problems_free(&problems);
	snapshot_unref(config);
	return mistakes == 0;
}
