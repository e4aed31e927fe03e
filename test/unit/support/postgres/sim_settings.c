/* SPDX-License-Identifier: ISC */
#include "support/postgres/sim_settings.h"

#include <ctype.h>
#include <strings.h>

#include "support/fakes/fake_pool.h"

/* Units of a value, each so many times the one before it, which ends the list with 0. */
struct unit {
	const char *name;
	unsigned times;
};

static const struct unit kilobytes[] = {{"kB", 1}, {"MB", 1024}, {"GB", 1024}, {NULL, 0}};
static const struct unit milliseconds[] = {{"ms", 1}, {"s", 1000}, {"min", 60}, {NULL, 0}};

static const struct {
	const char *name, *usual;
	const struct unit *units; /* NULL: text */
	bool is_listed; /* in pg_settings */
} known[SIM_SETTINGS] = {
	[SIM_APPLICATION_NAME] = {"application_name", "", NULL, true},
	[SIM_WORK_MEM] = {"work_mem", "4MB", kilobytes, true},
	[SIM_STATEMENT_TIMEOUT] = {"statement_timeout", "0", milliseconds, true},
	[SIM_TENANT] = {"app.tenant", "", NULL, false},
	[SIM_SCHEMA] = {"app.schema", "", NULL, false},
	[SIM_SEARCH_PATH] = {"search_path", "public", NULL, true},
	[SIM_ROLE] = {"role", "none", NULL, false},
};

const char *sim_setting_name(enum sim_setting setting)
{
	return known[setting].name;
}

enum sim_setting sim_setting_of(const char *name, size_t length)
{
	char plain[SIM_VALUE * 2] = "";
	size_t size = 0;

	for (size_t i = 0; i < length && size < sizeof(plain) - 1; i++)
		if (!strchr("\" ", name[i]))
			plain[size++] = name[i];
	for (unsigned i = 0; i < SIM_SETTINGS; i++)
		if (strcasecmp(plain, known[i].name) == 0)
			return (enum sim_setting)i;
	fail_msg("\"%s\" is no setting", plain);
	return SIM_SETTINGS;
}

/* --- values ------------------------------------------------------------------------------- */

static unsigned long number_of(const char *text, const struct unit *units)
{
	unsigned long number, factor = 1;
	char *unit;

	number = strtoul(text, &unit, 10);
	assert_true(unit != text);
	while (*unit && units->name) {
		factor *= units->times;
		if (strcmp(unit, units->name) == 0)
			return number * factor;
		units++;
	}
	assert_string_equal(unit, "");
	return number;
}

/* The largest unit that gives a whole number. */
static void write_number(unsigned long number, const struct unit *units, char *out, size_t size)
{
	if (number == 0) {
		snprintf(out, size, "0");
		return;
	}
	for (; units[1].name && number % units[1].times == 0; units++)
		number /= units[1].times;
	snprintf(out, size, "%lu%s", number, units->name);
}

/* As the server spells it: without quotes, and a number with its unit. */
static void spell(
	enum sim_setting setting, const char *text, size_t length, char out[SIM_VALUE])
{
	const struct unit *units = known[setting].units;
	char plain[SIM_VALUE] = "";
	size_t size = 0;

	for (size_t i = 0; i < length; i++) {
		if (strchr("'\"", text[i]))
			continue;
		assert_true(size < sizeof(plain) - 1);
		plain[size++] = text[i];
	}
	if (units)
		write_number(number_of(plain, units), units, out, SIM_VALUE);
	else
		memcpy(out, plain, sizeof(plain));
}

static const char *usual_value(const struct sim_settings *settings, enum sim_setting setting)
{
	return setting == SIM_APPLICATION_NAME ? settings->start : known[setting].usual;
}

static void change(
	struct sim_settings *settings, enum sim_setting setting, const char *value, bool is_set)
{
	struct sim_values *now = &settings->now;

	snprintf(now->value[setting], SIM_VALUE, "%s", value);
	memcpy(now->kept[setting], now->value[setting], SIM_VALUE);
	now->is_set[setting] = now->keeps_set[setting] = is_set;
}

void sim_settings_start(struct sim_settings *settings, const char *application_name)
{
	*settings = (struct sim_settings){0};
	snprintf(settings->start, sizeof(settings->start), "%s", application_name);
	memcpy(settings->reported, settings->start, sizeof(settings->start));
	sim_settings_reset_all(settings);
	settings->before = settings->now;
}

void sim_settings_set(struct sim_settings *settings, enum sim_setting setting,
	const char *value, size_t length, bool local)
{
	char spelled[SIM_VALUE];

	spell(setting, value, length, spelled);
	if (!local) {
		change(settings, setting, spelled, true);
		return;
	}
	memcpy(settings->now.value[setting], spelled, SIM_VALUE);
	settings->now.is_set[setting] = true;
}

void sim_settings_reset(struct sim_settings *settings, enum sim_setting setting)
{
	change(settings, setting, usual_value(settings, setting), false);
}

/* The role is not part of it. */
void sim_settings_reset_all(struct sim_settings *settings)
{
	const bool is_new = settings->now.value[SIM_ROLE][0] == '\0';

	for (unsigned i = 0; i < SIM_SETTINGS; i++)
		if (i != SIM_ROLE || is_new)
			sim_settings_reset(settings, (enum sim_setting)i);
}

void sim_settings_restore(struct sim_settings *settings, const char *name, const char *value,
	const char *after_reset)
{
	const enum sim_setting setting = sim_setting_of(name, strlen(name));
	const bool is_listed = known[setting].is_listed;

	if (is_listed ? settings->now.is_set[setting]
		      : strcmp(settings->now.value[setting], after_reset) != 0)
		return;
	sim_settings_set(settings, setting, value, strlen(value), false);
}

/* --- transactions ------------------------------------------------------------------------- */

void sim_settings_commit(struct sim_settings *settings)
{
	struct sim_values *now = &settings->now;

	memcpy(now->value, now->kept, sizeof(now->value));
	memcpy(now->is_set, now->keeps_set, sizeof(now->is_set));
	now->notified = 0;
	settings->before = *now;
	settings->depth = 0;
}

void sim_settings_rollback(struct sim_settings *settings)
{
	settings->now = settings->before;
	settings->depth = 0;
}

bool sim_settings_save(struct sim_settings *settings, const char *name)
{
	if (settings->depth == SIM_SAVEPOINTS)
		return false;
	snprintf(settings->savepoints[settings->depth].name,
		sizeof(settings->savepoints[0].name), "%s", name);
	settings->savepoints[settings->depth++].values = settings->now;
	return true;
}

/* The number of savepoints up to the newest with this name; 0: there is none. */
static unsigned find_savepoint(const struct sim_settings *settings, const char *name)
{
	unsigned found = settings->depth;

	while (found > 0 && strcmp(settings->savepoints[found - 1].name, name) != 0)
		found--;
	return found;
}

bool sim_settings_rollback_to(struct sim_settings *settings, const char *name)
{
	const unsigned found = find_savepoint(settings, name);

	if (found == 0)
		return false;
	settings->now = settings->savepoints[found - 1].values;
	settings->depth = found;
	return true;
}

bool sim_settings_release(struct sim_settings *settings, const char *name)
{
	const unsigned found = find_savepoint(settings, name);

	if (found == 0)
		return false;
	settings->depth = found - 1;
	return true;
}

void sim_settings_close_cursor(struct sim_settings *settings)
{
	settings->now.cursor = settings->before.cursor = false;
	for (unsigned i = 0; i < settings->depth; i++)
		settings->savepoints[i].values.cursor = false;
}

void sim_settings_drop_objects(struct sim_settings *settings)
{
	sim_settings_close_cursor(settings);
	settings->now.table = settings->before.table = settings->lock = false;
}

/* --- what is seen ------------------------------------------------------------------------- */

void sim_settings_show(const struct sim_settings *settings, char *out, size_t size)
{
	size_t used = 0;

	for (unsigned i = 0; i < SIM_SETTINGS; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? "|" : "",
			settings->now.value[i]);
	used += (size_t)snprintf(out + used, size - used, "%s%s%s",
		settings->now.table ? "|table" : "", settings->now.cursor ? "|cursor" : "",
		settings->lock ? "|lock" : "");
	assert_true(used < size);
}

bool sim_settings_list(
	const struct sim_settings *settings, enum sim_setting setting, char *out, size_t size)
{
	const char *value = settings->now.value[setting];
	const struct unit *units = known[setting].units;

	if (!known[setting].is_listed || !settings->now.is_set[setting])
		return false;
	if (units)
		snprintf(out, size, "%lu", number_of(value, units));
	else
		snprintf(out, size, "%s", value);
	return true;
}
