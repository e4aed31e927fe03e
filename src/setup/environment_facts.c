/* SPDX-License-Identifier: ISC */
/* Reads the variables into facts, one for each thing that they say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "setup/environment_parts.h"
#include "setup/secret_file.h"
#include "setup/url.h"

enum { NAME_SIZE = 128 };

static const char file_suffix[] = "_FILE";

/* One variable while it is read. */
struct reading {
	struct environment *environment;
	const char *variable;
	char *why;
	size_t size;
};

static void drop(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static bool refuse(const struct reading *reading, const char *reason)
{
	snprintf(reading->why, reading->size, "%s: %s", reading->variable, reason);
	return false;
}

/* --- facts -------------------------------------------------------------------------------- */

const struct fact *environment_find(
	const struct environment *environment, enum fact_kind kind, const char *key)
{
	for (size_t i = 0; i < environment->count; i++) {
		const struct fact *fact = &environment->facts[i];

		if (fact->kind == kind && (!key || (fact->key && strcmp(fact->key, key) == 0)))
			return fact;
	}
	return NULL;
}

const char *environment_value(const struct environment *environment, enum fact_kind kind)
{
	const struct fact *fact = environment_find(environment, kind, NULL);

	return fact ? fact->value : NULL;
}

/* Values that an error may not show. Among parameters of a URL is libpq's sslpassword. */
static bool is_secret(const struct fact *fact)
{
	static const enum fact_kind kinds[] = {FACT_PASSWORD, FACT_URL, FACT_URLS, FACT_DSN,
		FACT_USERLIST, FACT_CONNECT_QUERY, FACT_PARAMETER};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (fact->kind == kinds[i])
			return true;
	}
	return fact->kind == FACT_SETTING && draft_hides(fact->key);
}

static bool refuse_both(
	const struct reading *reading, const struct fact *fact, const char *value)
{
	if (is_secret(fact))
		snprintf(reading->why, reading->size,
			"%s and %s contradict each other: set one of them", fact->variable,
			reading->variable);
	else
		snprintf(reading->why, reading->size,
			"%s (%s) and %s (%s) contradict each other: set one of them",
			fact->variable, fact->value, reading->variable, value);
	return false;
}

static bool reserve(struct environment *environment)
{
	const size_t capacity = environment->capacity ? environment->capacity * 2 : 32;
	struct fact *facts;

	if (environment->count < environment->capacity)
		return true;
	facts = realloc(environment->facts, capacity * sizeof(*facts));
	if (!facts)
		return false;
	environment->facts = facts;
	environment->capacity = capacity;
	return true;
}

/* Note what the variable says, unless another has said the same. */
static bool note(const struct reading *reading, enum fact_kind kind, const char *key,
	enum family family, const char *value)
{
	struct environment *environment = reading->environment;
	const struct fact *former = environment_find(environment, kind, key);
	struct fact fact = {.kind = kind, .family = family};

	if (former)
		return strcmp(former->value, value) == 0 || refuse_both(reading, former, value);
	fact.key = key ? strdup(key) : NULL;
	fact.value = strdup(value);
	fact.variable = strdup(reading->variable);
	if ((key && !fact.key) || !fact.value || !fact.variable || !reserve(environment)) {
		drop(fact.key);
		drop(fact.value);
		drop(fact.variable);
		return refuse(reading, "out of memory");
	}
	environment->facts[environment->count++] = fact;
	return true;
}

/* --- values ------------------------------------------------------------------------------- */

/* Parts of a URL are what variables of their own would say. */
static bool note_part(const struct reading *reading, const struct pair *pair)
{
	static const struct {
		const char *key;
		enum fact_kind kind;
	} parts[] = {
		{"host", FACT_HOST},
		{"port", FACT_PORT},
		{"user", FACT_USER},
		{"password", FACT_PASSWORD},
		{"dbname", FACT_DBNAME},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(pair->key, parts[i].key) == 0)
			return note(reading, parts[i].kind, NULL, FAMILY_EDOBURU, pair->value);
	}
	return note(reading, FACT_PARAMETER, pair->key, FAMILY_EDOBURU, pair->value);
}

static bool note_url(const struct reading *reading, const char *url)
{
	struct pairs pairs = {0};
	char reason[200];
	bool done = url_parse(url, &pairs, reason, sizeof(reason)) || refuse(reading, reason);

	if (done && !pairs_find(&pairs, "host"))
		done = refuse(reading, "the URL has no host");
	for (size_t i = 0; done && i < pairs.count; i++)
		done = note_part(reading, &pairs.at[i]);
	pairs_free(&pairs);
	return done;
}

static bool note_value(
	const struct reading *reading, const struct meaning *meaning, const char *value)
{
	if (value[0] == '\0' && !meaning->may_be_empty)
		return true;
	reading->environment->variables++;
	if (meaning->kind == FACT_URL)
		return note_url(reading, value);
	return note(reading, meaning->kind, meaning->key[0] ? meaning->key : NULL,
		meaning->family, value);
}

/* --- variables ---------------------------------------------------------------------------- */

/* Whether the name is that of a known variable with _FILE behind it, which is cut then. */
static bool names_file(const char *variable, struct meaning *meaning)
{
	const size_t length = strlen(variable), suffix = strlen(file_suffix);
	char base[NAME_SIZE];

	if (length <= suffix || length - suffix >= sizeof(base) ||
		strcmp(variable + length - suffix, file_suffix) != 0)
		return false;
	memcpy(base, variable, length - suffix);
	base[length - suffix] = '\0';
	return environment_meaning(base, meaning);
}

static bool read_file(
	const struct reading *reading, const struct meaning *meaning, const char *path)
{
	char reason[300];
	char *value;
	bool done;

	if (path[0] == '\0')
		return true;
	value = secret_file_read(path, reason, sizeof(reason));
	if (!value)
		return refuse(reading, reason);
	done = note_value(reading, meaning, value);
	drop(value);
	return done;
}

/* A mistyped name with our own prefix would be missed; the others are the images' business. */
static bool refuse_unknown(const struct reading *reading)
{
	const char *nearest = environment_nearest(reading->variable);
	char reason[128];

	if (strncmp(reading->variable, "PGUSHER_", strlen("PGUSHER_")) != 0)
		return true;
	snprintf(reason, sizeof(reason), "there is no such setting%s%s%s",
		nearest ? ": did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
	return refuse(reading, reason);
}

static bool read_variable(const struct reading *reading, const char *value)
{
	struct meaning meaning;

	if (environment_meaning(reading->variable, &meaning))
		return strstr(value, "://") && environment_is_service_link("", value)
			? true
			: note_value(reading, &meaning, value);
	if (names_file(reading->variable, &meaning))
		return read_file(reading, &meaning, value);
	if (environment_is_service_link(reading->variable, value))
		return true;
	return refuse_unknown(reading);
}

/* --- all ---------------------------------------------------------------------------------- */

/*
 * The variable that names the server decides. Bitnami's image has a host of its own, which it uses
 * as soon as one of its other variables is about the server.
 */
static enum family family_of(const struct environment *environment)
{
	static const enum fact_kind named[] = {FACT_HOST, FACT_URLS, FACT_DSN};

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		const struct fact *fact = environment_find(environment, named[i], NULL);

		if (fact)
			return fact->family;
	}
	for (size_t i = 0; i < environment->count; i++) {
		const struct fact *fact = &environment->facts[i];

		if (fact->family == FAMILY_BITNAMI && fact->kind <= FACT_NAME)
			return FAMILY_BITNAMI;
	}
	return FAMILY_NONE;
}

/* Returns a new text; NULL when out of memory. */
static char *join(const char *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* Files are where the image has them, or in a folder of the user's. */
static bool set_files(struct environment *environment)
{
	const struct family_defaults *defaults = environment_defaults(environment->family);
	const char *folder = environment_value(environment, FACT_FOLDER);
	const char *name = strrchr(defaults->place, '/') + 1;
	char *usual = strndup(defaults->place, (size_t)(name - 1 - defaults->place));

	if (usual) {
		environment->file = join(folder ? folder : usual, name);
		environment->users_file = join(folder ? folder : usual, defaults->users);
	}
	free(usual);
	return environment->file && environment->users_file;
}

struct environment *environment_read(char *const *variables, char *why, size_t size)
{
	struct environment *environment = calloc(1, sizeof(*environment));
	struct reading reading = {.environment = environment, .why = why, .size = size};
	char name[NAME_SIZE];

	snprintf(why, size, "out of memory");
	if (!environment)
		return NULL;
	reading.variable = name;
	for (; *variables; variables++) {
		const size_t length = strcspn(*variables, "=");

		if (length >= sizeof(name) || (*variables)[length] != '=')
			continue;
		memcpy(name, *variables, length);
		name[length] = '\0';
		if (!read_variable(&reading, *variables + length + 1)) {
			environment_free(environment);
			return NULL;
		}
	}
	environment->family = family_of(environment);
	if (set_files(environment))
		return environment;
	environment_free(environment);
	return NULL;
}

void environment_free(struct environment *environment)
{
	if (!environment)
		return;
	for (size_t i = 0; i < environment->count; i++) {
		drop(environment->facts[i].key);
		drop(environment->facts[i].value);
		drop(environment->facts[i].variable);
	}
	free(environment->facts);
	free(environment->file);
	free(environment->users_file);
	free(environment);
}
