/* SPDX-License-Identifier: ISC */
#include "daemon/progress/reload_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "config/entry.h"
#include "daemon/systemd.h"
#include "session/serving/control.h"

/* A reload that takes longer is notable. */
#define LONG_TIME USEC_PER_SEC

/* --- two configurations ------------------------------------------------------------------- */

/* A list sorted by name: the entry at this index and its name; false after the last one. */
struct source {
	bool (*at)(const struct snapshot *snapshot, size_t index, const char **name,
		const void **entry);
	bool (*same)(const void *a, const void *b);
};

static bool database_at(
	const struct snapshot *snapshot, size_t index, const char **name, const void **entry)
{
	const struct database_config *config = snapshot_database(snapshot, index);

	*entry = config;
	*name = config ? config->name : NULL;
	return config != NULL;
}

static bool database_same(const void *a, const void *b)
{
	return entry_same(database_config_grammar(), a, b);
}

static bool user_entry_at(
	const struct snapshot *snapshot, size_t index, const char **name, const void **entry)
{
	const struct user_config *config = snapshot_user(snapshot, index);

	*entry = config;
	*name = config ? config->name : NULL;
	return config != NULL;
}

static bool user_entry_same(const void *a, const void *b)
{
	return entry_same(user_config_grammar(), a, b);
}

static bool peer_at(
	const struct snapshot *snapshot, size_t index, const char **name, const void **entry)
{
	const struct peer_config *config = snapshot_peer(snapshot, index);

	*entry = config;
	*name = config ? config->name : NULL;
	return config != NULL;
}

static bool peer_same(const void *a, const void *b)
{
	return entry_same(peer_config_grammar(), a, b);
}

static bool user_at(
	const struct snapshot *snapshot, size_t index, const char **name, const void **entry)
{
	const char *secret = NULL;
	const bool found = userlist_entry(snapshot_userlist(snapshot), index, name, &secret);

	*entry = secret;
	return found;
}

static bool user_same(const void *a, const void *b)
{
	return strcmp(a, b) == 0;
}

static const struct source databases = {database_at, database_same};
static const struct source users = {user_at, user_same};
static const struct source user_entries = {user_entry_at, user_entry_same};
static const struct source peers = {peer_at, peer_same};

static struct reload_changes compare(
	const struct source *source, const struct snapshot *old, const struct snapshot *new)
{
	struct reload_changes changes = {0};
	const char *old_name = NULL, *new_name = NULL;
	const void *old_entry = NULL, *new_entry = NULL;
	size_t in_old = 0, in_new = 0;

	for (;;) {
		const bool has_old = source->at(old, in_old, &old_name, &old_entry);
		const bool has_new = source->at(new, in_new, &new_name, &new_entry);
		int order;

		if (!has_old && !has_new)
			return changes;
		order = !has_old ? 1 : !has_new ? -1 : strcmp(old_name, new_name);
		changes.removed += order < 0;
		changes.added += order > 0;
		changes.changed += order == 0 && !source->same(old_entry, new_entry);
		in_old += order <= 0;
		in_new += order >= 0;
	}
}

static void compare_templates(
	struct reload_changes *changes, const struct snapshot *old, const struct snapshot *new)
{
	const struct database_config *before = snapshot_template(old);
	const struct database_config *after = snapshot_template(new);

	changes->added += after && !before;
	changes->removed += before && !after;
	changes->changed += before && after && !database_same(before, after);
}

static void compare_settings(
	struct reload_report *report, const struct settings *old, const struct settings *new)
{
	size_t at = 0, length = 0;
	const char *name;

	while ((name = settings_next_difference(old, new, &at)) != NULL) {
		if (length + strlen(name) + 8 < sizeof(report->names))
			length += (size_t)snprintf(report->names + length,
				sizeof(report->names) - length, "%s%s", length > 0 ? ", " : "",
				name);
		else if (report->names[length - 1] != '.')
			length += (size_t)snprintf(report->names + length,
				sizeof(report->names) - length, ", ...");
		report->settings++;
	}
}

static size_t count_files(const struct file_list *files)
{
	size_t count = 0;

	for (size_t i = 0; i < files->count; i++)
		count += !files->files[i].suffix && files->files[i].when_read.exists;
	return count;
}

static size_t count_databases(const struct snapshot *snapshot)
{
	size_t count = 0;

	while (snapshot_database(snapshot, count))
		count++;
	return count + (snapshot_template(snapshot) != NULL);
}

/* --- words -------------------------------------------------------------------------------- */

static void say(struct reload_report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(struct reload_report *report, const char *format, ...)
{
	const size_t length = strlen(report->text);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(
		report->text + length, sizeof(report->text) - length, format, arguments);
	va_end(arguments);
}

static void say_count(struct reload_report *report, size_t count, const char *what)
{
	char number[TEXT_GROUPED_SIZE];

	say(report, "%s %s%s", text_grouped(count, number), what, count == 1 ? "" : "s");
}

static void say_time(struct reload_report *report, usec_t time)
{
	if (time < LONG_TIME)
		say(report, "%lld ms", (long long)(time / USEC_PER_MSEC));
	else
		say(report, "%.1f s", (double)time / USEC_PER_SEC);
}

static void say_part(struct reload_report *report, bool *said, size_t count, const char *noun,
	const char *done)
{
	char number[TEXT_GROUPED_SIZE];

	if (count == 0)
		return;
	say(report, "%s%s", *said ? ", " : "; ", text_grouped(count, number));
	if (!*said)
		say(report, " %s%s", noun, count == 1 ? "" : "s");
	say(report, " %s", done);
	*said = report->notable = true;
}

/* `; 2 databases added, 1 changed, 3 removed` */
static void say_changes(
	struct reload_report *report, const struct reload_changes *changes, const char *noun)
{
	bool said = false;

	say_part(report, &said, changes->added, noun, "added");
	say_part(report, &said, changes->changed, noun, "changed");
	say_part(report, &said, changes->removed, noun, "removed");
}

static void say_read(struct reload_report *report)
{
	report->text[0] = '\0';
	say(report, "RELOAD: read ");
	say_count(report, report->files, "file");
	say(report, " with ");
	say_count(report, report->database_count, "database");
	say(report, " and ");
	say_count(report, report->user_count, "user");
	say(report, " in ");
	say_time(report, report->read - report->began);
}

static void say_settings(struct reload_report *report)
{
	if (report->settings == 0)
		return;
	say(report, "; ");
	say_count(report, report->settings, "setting");
	say(report, " changed (%s)", report->names);
	report->notable = true;
}

static void say_servers(struct reload_report *report, const struct registry *registry)
{
	const unsigned retired = control_count_retired(registry, NULL).servers;

	if (retired <= report->retired)
		return;
	say(report, "; ");
	say_count(report, retired - report->retired, "server");
	say(report, " %s to be renewed as %s free",
		retired - report->retired == 1 ? "is" : "are",
		retired - report->retired == 1 ? "it comes" : "they come");
	report->notable = true;
}

/* --- a reload ----------------------------------------------------------------------------- */

void reload_report_begin(struct reload_report *report)
{
	*report = (struct reload_report){.began = clock_monotonic()};
}

void reload_report_read(struct reload_report *report, const struct registry *registry,
	const struct snapshot *new, const struct file_list *files)
{
	const struct snapshot *old = registry->process->config;

	report->read = clock_monotonic();
	report->files = count_files(files);
	report->database_count = count_databases(new);
	report->user_count = userlist_count(snapshot_userlist(new));
	report->retired = control_count_retired(registry, NULL).servers;
	say_read(report);
	if (report->read - report->began > LONG_TIME)
		log_write(LEVEL_LOG, "%s, applying it", report->text);
	report->databases = compare(&databases, old, new);
	compare_templates(&report->databases, old, new);
	report->user_entries = compare(&user_entries, old, new);
	report->peers = compare(&peers, old, new);
	/* A file that has not changed is not read again. */
	if (snapshot_userlist(old) != snapshot_userlist(new))
		report->users = compare(&users, old, new);
	compare_settings(report, snapshot_settings(old), snapshot_settings(new));
}

void reload_report_end(struct reload_report *report, const struct registry *registry)
{
	const usec_t now = clock_monotonic();

	say(report, ", applied in ");
	say_time(report, now - report->read);
	say_changes(report, &report->databases, "database");
	say_changes(report, &report->users, "user");
	say_changes(report, &report->user_entries, "entry of [users]");
	say_changes(report, &report->peers, "peer");
	say_settings(report);
	say_servers(report, registry);
	if (!report->notable)
		say(report, "; nothing has changed");
	if (now - report->began > LONG_TIME)
		report->notable = true;
	log_write(LEVEL_LOG, "%s", report->text);
	systemd_status(report->text);
}
