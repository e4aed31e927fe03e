/* SPDX-License-Identifier: ISC */
#include "daemon/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "daemon/privileges.h"
#include "session/auth/method.h"
#include "session/tls_setup.h"

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

/* --- what the files name ------------------------------------------------------------------ */

static void check_user(const char *user, const char *file, struct problems *problems)
{
	if (user && !privileges_knows_user(user))
		problems_add(problems, PROBLEM_ERROR, file, 0,
			"user: there is no system user '%s'", user);
}

static void check_socket_directory(
	const char *path, const char *file, struct problems *problems)
{
	struct stat status;

	if (path[0] == '\0' || path[0] == '@')
		return;
	if (stat(path, &status) != 0)
		problems_add(problems, PROBLEM_ERROR, file, 0, "unix_socket_dir: '%s': %s",
			path, strerror(errno));
	else if (!S_ISDIR(status.st_mode))
		problems_add(problems, PROBLEM_ERROR, file, 0,
			"unix_socket_dir: '%s' is not a directory", path);
}

/* What a start would find out next. */
static void check_surroundings(
	const struct options *options, const struct snapshot *config, struct problems *problems)
{
	const struct settings *settings = snapshot_settings(config);
	const bool is_background = options->background && settings->pidfile[0] == '\0';
	char why[512];

	if (!tls_setup_check(settings, why, sizeof(why)))
		problems_add(problems, PROBLEM_ERROR, options->config, 0, "%s", why);
	if (!auth_load(config, why, sizeof(why)))
		problems_add(problems, PROBLEM_ERROR, options->config, 0, "%s", why);
	check_user(options->user ? options->user : settings->user, options->config, problems);
	check_socket_directory(settings->unix_socket_dir, options->config, problems);
	if (settings->listen_addr[0] == '\0' && settings->unix_socket_dir[0] == '\0')
		problems_add(problems, PROBLEM_ERROR, options->config, 0,
			"nowhere to listen on: neither listen_addr nor unix_socket_dir is set");
	if (is_background)
		problems_add(problems, PROBLEM_ERROR, options->config, 0,
			"daemon needs pidfile configured");
}

/* --- telling ------------------------------------------------------------------------------ */

static void print(const struct problem *problem)
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
		check_surroundings(options, config, &problems);
	while ((problem = problems_next(&problems, problem)) != NULL)
		print(problem);
	mistakes = problems.errors + problems.skipped;
	found = mistakes + problems.warnings;
	if (found > problems.count)
		printf("%s: and %zu more\n", options->config, found - problems.count);
	problems_free(&problems);
	snapshot_unref(config);
	return mistakes == 0;
}
