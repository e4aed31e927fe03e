/* SPDX-License-Identifier: ISC */
#include "daemon/modes/container.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "config/userlist.h"
#include "daemon/check.h"
#include "daemon/modes/health.h"
#include "daemon/privileges.h"
#include "setup/environment.h"
#include "setup/saving.h"

/* The user of the image, if it is started as root. */
static const char usual_user[] = "postgres";

struct entry {
	const struct options *options;
	enum options_action action; /* of the command line; only OPTIONS_RUN leaves files */
	struct environment *environment;
	struct draft *draft;
	char users_path[4096]; /* of the auth_file that was made; "": none, or in memory */
	char config[4096]; /* the file to use; "": none */
};

/* Values of variables are part of the reason, and may have line ends. */
static bool refuse(const char *why)
{
	char line[4200];

	text_escape(line, sizeof(line), why, strlen(why));
	log_write(LEVEL_FATAL, "%s", line);
	return false;
}

static bool has_command(const struct entry *entry)
{
	return entry->options->command[0] != NULL;
}

/* --- files -------------------------------------------------------------------------------- */

static bool store_copy(char *path, size_t size, const char *from)
{
	return (size_t)snprintf(path, size, "%s", from) < size || refuse("a path is too long");
}

/*
 * Set `path` to where the text was stored: the file, or memory. A check writes nothing. Sets
 * `*written` if there is a file now.
 */
static bool store(const struct entry *entry, const char *name, const char *file,
	const struct buffer *text, char path[4096], bool *written)
{
	enum saving_result result = SAVING_NO_PLACE;
	char why[4200], kept[SAVING_PATH_SIZE];

	*written = false;
	if (entry->action == OPTIONS_RUN)
		result = saving_write(file, text, 0600, why, sizeof(why));
	switch (result) {
	case SAVING_FAILED:
		return refuse(why);
	case SAVING_NO_PLACE:
		return (saving_keep(name, text, kept, why, sizeof(why)) || refuse(why)) &&
			store_copy(path, 4096, kept);
	case SAVING_DONE:
		break;
	}
	*written = true;
	return store_copy(path, 4096, file);
}

/* Add the users of an existing auth_file; those that the variables name as well stay theirs. */
static bool add_existing_users(struct entry *entry, const struct userlist *list)
{
	const char *name, *secret;
	char why[200];

	for (size_t i = 0; userlist_entry(list, i, &name, &secret); i++) {
		if (!draft_add_user(entry->draft, name, secret, why, sizeof(why)))
			return refuse(why);
	}
	return true;
}

/* Whether all users of the variables are in the file, so that nothing is to be added. */
static bool has_all_users(const struct entry *entry, const struct userlist *list)
{
	const char *name;

	for (size_t i = 0; (name = draft_user(entry->draft, i)) != NULL; i++) {
		if (!userlist_find(list, name))
			return false;
	}
	return true;
}

static bool write_users(struct entry *entry, const char *file, bool exists)
{
	struct buffer text;
	char path[4096], why[4200];
	bool done, written = false;

	buffer_init_secret(&text);
	done = draft_write_users(entry->draft, DRAFT_SHOW_SECRETS, &text) ||
		refuse("out of memory");
	if (done && exists)
		done = (saving_keep("userlist", &text, path, why, sizeof(why)) || refuse(why));
	else if (done)
		done = store(entry, "userlist", file, &text, path, &written);
	buffer_wipe(&text);
	if (done && written)
		done = store_copy(entry->users_path, sizeof(entry->users_path), path);
	return done &&
		(draft_set(entry->draft, "auth_file", path, why, sizeof(why)) || refuse(why));
}

/*
 * An existing auth_file is never changed. If it lacks a user of the variables, such as the one
 * that looks up others, it is copied to memory together with that user.
 */
static bool use_existing_users(struct entry *entry, const char *file)
{
	struct problems problems = {0};
	struct userlist *list = userlist_load(file, NULL, &problems);
	char why[300];
	bool done;

	check_log_problems(&problems);
	problems_free(&problems);
	if (!list) {
		snprintf(why, sizeof(why), "cannot use the auth_file %.200s", file);
		return refuse(why);
	}
	if (has_all_users(entry, list)) {
		done = draft_set(entry->draft, "auth_file", file, why, sizeof(why)) ||
			refuse(why);
	} else {
		log_write(LEVEL_LOG,
			"%s lacks a user of the environment: RELOAD does not read it again",
			file);
		done = add_existing_users(entry, list) && write_users(entry, file, true);
	}
	userlist_unref(list);
	return done;
}

static bool make_users(struct entry *entry)
{
	const char *named = draft_get(entry->draft, "auth_file");
	char file[4096];

	if (!store_copy(file, sizeof(file),
		    named ? named : environment_users_file(entry->environment)))
		return false;
	if (access(file, F_OK) == 0)
		return use_existing_users(entry, file);
	return draft_user_count(entry->draft) == 0 || write_users(entry, file, false);
}

static bool write_config(struct entry *entry)
{
	struct buffer text;
	bool done, written;

	buffer_init_secret(&text);
	done = (draft_write(entry->draft, DRAFT_SHOW_SECRETS, &text) ||
		       refuse("out of memory")) &&
		store(entry, "pgbouncer.ini", environment_file(entry->environment), &text,
			entry->config, &written);
	buffer_wipe(&text);
	return done;
}

/* The draft's values are good one by one; together they may not be. */
static bool check(const struct entry *entry)
{
	struct problems problems = {0};
	const bool good =
		draft_check(entry->draft, environment_file(entry->environment), &problems);

	if (!good)
		check_log_problems(&problems);
	problems_free(&problems);
	return good || refuse("the variables of the environment make no configuration");
}

/* --- making the configuration ------------------------------------------------------------- */

static void log_findings(const struct entry *entry)
{
	const struct problem *problem = NULL;

	while ((problem = problems_next(draft_findings(entry->draft), problem)) != NULL)
		log_write(LEVEL_WARNING, "%s: %s", problem->file, problem->text);
}

static bool is_pooler(const char *command)
{
	const char *slash = strrchr(command, '/');
	const char *name = slash ? slash + 1 : command;

	return strcmp(name, "pgbouncer") == 0 || strcmp(name, "pgusher") == 0;
}

/*
 * As root, become the pooler's user now, so that it can read the files that are made here. Other
 * commands stay root.
 */
static bool assume_user(const struct entry *entry)
{
	const char *user =
		entry->options->user ? entry->options->user : draft_get(entry->draft, "user");
	char why[256];

	if (getuid() != 0 || (has_command(entry) && !is_pooler(entry->options->command[0])))
		return true;
	if (!user && privileges_knows_user(usual_user))
		user = usual_user;
	return !user || privileges_assume(user, why, sizeof(why)) || refuse(why);
}

/* Nothing is left behind if the second file cannot be made. */
static bool make_files(struct entry *entry)
{
	if (make_users(entry) && check(entry) && write_config(entry))
		return true;
	if (entry->users_path[0] != '\0')
		unlink(entry->users_path);
	return false;
}

static bool make_config(struct entry *entry)
{
	char why[600];

	entry->draft = draft_new();
	if (!entry->draft)
		return refuse("out of memory");
	return (draft_title(
			entry->draft, "Made from the environment by pgusher --container.") ||
		       refuse("out of memory")) &&
		(environment_fill(entry->environment, entry->draft, why, sizeof(why)) ||
			refuse(why)) &&
		(log_findings(entry), assume_user(entry)) && make_files(entry);
}

static bool use_existing(struct entry *entry)
{
	const char *place;

	for (size_t i = 0; (place = environment_place(entry->environment, i)) != NULL; i++) {
		if (access(place, F_OK) != 0)
			continue;
		if (environment_count(entry->environment) > 0 && entry->action == OPTIONS_RUN)
			log_write(LEVEL_LOG,
				"%s exists and is used as it is: variables are not", place);
		return store_copy(entry->config, sizeof(entry->config), place);
	}
	return false;
}

static bool refuse_without_server(const struct entry *entry)
{
	char why[4200];

	snprintf(why, sizeof(why),
		"no server is named: set DATABASE_URL or DB_HOST, or put a configuration at %s",
		environment_file(entry->environment));
	return refuse(why);
}

/* --to and --listen need no file, and a file that the command line names is the one. */
static bool find_config(struct entry *entry)
{
	const struct options *options = entry->options;

	if (options->to || options->listen_count > 0)
		return true;
	if (options->config)
		return store_copy(entry->config, sizeof(entry->config), options->config);
	if (use_existing(entry))
		return true;
	if (environment_names_server(entry->environment))
		return make_config(entry);
	return has_command(entry) || refuse_without_server(entry);
}

/* --- executing ---------------------------------------------------------------------------- */

static int execute(char *const *words)
{
	execvp(words[0], words);
	log_write(LEVEL_FATAL, "cannot run %s: %s", words[0], strerror(errno));
	return errno == ENOENT ? CONTAINER_NOT_FOUND : CONTAINER_NOT_EXECUTABLE;
}

/*
 * A command that names the file where the image has it gets the place in memory, if that is where
 * it is.
 */
static int execute_command(const struct entry *entry)
{
	char **words = entry->options->command;

	for (size_t i = 0; words[i]; i++) {
		if (entry->config[0] != '\0' &&
			strcmp(words[i], environment_file(entry->environment)) == 0)
			words[i] = (char *)entry->config;
	}
	return execute(words);
}

/* Ourselves: with the options of the command line and those of the environment, and the file. */
static int execute_pooler(const struct entry *entry)
{
	const struct options *options = entry->options;
	const char *flags = environment_flags(entry->environment);
	char *copy = strdup(flags ? flags : ""), *rest = copy, *word;
	const size_t most = options->own_count + (flags ? strlen(flags) / 2 + 1 : 0) + 3;
	char **words = calloc(most, sizeof(*words));
	size_t count = 0;
	int status = EXIT_FAILURE;

	if (words && copy) {
		words[count++] = (char *)options->program;
		for (size_t i = 0; i < options->own_count; i++)
			words[count++] = options->own[i];
		while ((word = strtok_r(rest, " \t", &rest)) != NULL)
			words[count++] = word;
		if (entry->config[0] != '\0')
			words[count] = (char *)entry->config;
		status = execute(words);
	} else {
		refuse("out of memory");
	}
	free(words);
	free(copy);
	return status;
}

int container_run(const struct options *options, enum options_action action)
{
	static const struct log_options to_stderr = {.to_stderr = true};
	const int failure = action == OPTIONS_HEALTH ? HEALTH_NOT_ASKED : EXIT_FAILURE;
	struct entry entry = {.options = options, .action = action};
	char why[600];
	int status = failure;

	log_configure(&to_stderr);
	entry.environment = environment_read(environ, why, sizeof(why));
	if (!entry.environment)
		refuse(why);
	else if (find_config(&entry))
		status = has_command(&entry) ? execute_command(&entry) : execute_pooler(&entry);
	draft_free(entry.draft);
	environment_free(entry.environment);
	log_close();
	return status;
}
