/* SPDX-License-Identifier: ISC */
#include "daemon/modes/unfiled.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/privileges.h"
#include "setup/saving.h"

static const char title[] = "The configuration of this command, as a file.";
static const char users_remark[] = "The file has the user above, with its password:";

static bool refuse(const struct options *options, const char *why)
{
	fprintf(stderr, "%s: %s\n", options->program, why);
	return false;
}

/* As libpq: PGUSER, or the name of the system user. */
static const char *usual_user(void)
{
	const char *named = getenv("PGUSER");
	const struct passwd *own = named ? NULL : getpwuid(getuid());

	return own ? own->pw_name : named;
}

struct arguments unfiled_arguments(const struct options *options)
{
	return (struct arguments){
		.listen = options->listen,
		.to = options->to,
		.presets = options->presets,
		.user = usual_user(),
		.password = getenv("PGPASSWORD"),
	};
}

static bool fill(const struct options *options, struct draft *draft)
{
	const struct arguments arguments = unfiled_arguments(options);
	char why[400];

	return arguments_fill(draft, &arguments, why, sizeof(why)) || refuse(options, why);
}

/* --- printing ----------------------------------------------------------------------------- */

/* What the file of users has is told as a comment, since it is no file here. */
static bool remark_users(struct draft *draft)
{
	struct buffer users = {0};
	bool done = draft_write_users(draft, DRAFT_MASK_SECRETS, &users);

	/* Without its last line end. */
	if (done && users.length > 0) {
		users.data[users.length - 1] = '\0';
		done = draft_remark(draft, DRAFT_MAIN, "auth_file", users_remark) &&
			draft_remark(draft, DRAFT_MAIN, "auth_file", (const char *)users.data);
	}
	buffer_free(&users);
	return done;
}

static bool print(const struct options *options, const struct draft *draft)
{
	struct buffer text = {0};
	const bool done = draft_write(draft, DRAFT_MASK_SECRETS, &text);

	if (done && !options->quiet) {
		fwrite(text.data, 1, text.length, stdout);
		fflush(stdout);
	}
	buffer_free(&text);
	return done;
}

/* --- keeping ------------------------------------------------------------------------------ */

/* The memory is opened through /proc, which is closed to a process that has changed its user. */
static bool assume_user(const struct options *options)
{
	char why[256];

	if (!options->user)
		return true;
	if (!privileges_assume(options->user, why, sizeof(why)))
		return refuse(options, why);
	return prctl(PR_SET_DUMPABLE, 1) == 0;
}

static bool keep(const struct options *options, const char *name, const struct buffer *text,
	char path[SAVING_PATH_SIZE])
{
	char why[300];

	return saving_keep(name, text, path, why, sizeof(why)) || refuse(options, why);
}

static bool keep_users(const struct options *options, struct draft *draft)
{
	struct buffer text;
	char path[SAVING_PATH_SIZE], why[300];
	bool done;

	buffer_init_secret(&text);
	done = (draft_write_users(draft, DRAFT_SHOW_SECRETS, &text) ||
		       refuse(options, "out of memory")) &&
		keep(options, "userlist.txt", &text, path) &&
		(draft_set(draft, "auth_file", path, why, sizeof(why)) || refuse(options, why));
	buffer_wipe(&text);
	return done;
}

static bool keep_config(struct options *options, const struct draft *draft)
{
	struct buffer text;
	bool done;

	buffer_init_secret(&text);
	done = (draft_write(draft, DRAFT_SHOW_SECRETS, &text) ||
		       refuse(options, "out of memory")) &&
		keep(options, "pgusher.ini", &text, options->kept);
	buffer_wipe(&text);
	options->config = options->kept;
	return done;
}

/* A file that has the users is named in what is printed; the one in memory has no such name. */
static bool name_users(const struct options *options, struct draft *draft)
{
	char why[300];

	return (remark_users(draft) || refuse(options, "out of memory")) &&
		(draft_set(draft, "auth_file", "userlist.txt", why, sizeof(why)) ||
			refuse(options, why));
}

static bool prepare(struct options *options, struct draft *draft)
{
	bool has_users;

	if (!draft_title(draft, title))
		return refuse(options, "out of memory");
	if (!fill(options, draft))
		return false;
	has_users = draft_user_count(draft) > 0;
	return (!has_users || name_users(options, draft)) &&
		(print(options, draft) || refuse(options, "out of memory")) &&
		assume_user(options) && (!has_users || keep_users(options, draft)) &&
		keep_config(options, draft);
}

bool unfiled_prepare(struct options *options)
{
	struct draft *draft = draft_new();
	const bool done = draft ? prepare(options, draft) : refuse(options, "out of memory");

	draft_free(draft);
	return done;
}
