/* SPDX-License-Identifier: ISC */
/* Unpacking sets, and making sets from values. */
#include "wire/parameter_values.h"

#include <string.h>
#include <strings.h>

#include "base/check.h"

const char *const parameter_identity[PARAMETER_IDENTITIES] = {"role", "session_authorization"};

/* Names mostly arrive in order. */
unsigned parameter_values_place(
	const struct parameter_values *values, const char *name, bool *present)
{
	unsigned low = 0, high = values->count;

	*present = false;
	if (high > 0 && strcmp(values->followed[high - 1].name, name) < 0)
		return high;
	while (low < high) {
		const unsigned middle = (low + high) / 2;
		const int order = strcmp(values->followed[middle].name, name);

		if (order == 0) {
			*present = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool parameter_values_follow(
	struct parameter_values *values, const char *name, const char *value)
{
	bool present;
	const unsigned place = parameter_values_place(values, name, &present);
	struct followed *at = &values->followed[place];

	if (!present) {
		if (values->count == sizeof(values->followed) / sizeof(*values->followed))
			return false;
		memmove(at + 1, at, (values->count - place) * sizeof(*at));
		values->count++;
	}
	*at = (struct followed){name, value};
	return true;
}

void parameter_values_follow_user(
	const struct parameter_table *table, struct parameter_values *values, const char *usual)
{
	const int index = parameter_index(table, "session_authorization");
	const char *user = index >= 0 ? values->tracked[index] : NULL;

	if (user == NULL)
		return;
	values->tracked[index] = NULL;
	if (usual == NULL || strcmp(user, usual) != 0)
		parameter_values_follow(values, "session_authorization", user);
}

void parameter_values_put_identity_last(
	const struct parameter_table *table, struct parameter_values *values)
{
	unsigned i, place;

	parameter_values_follow_user(table, values, NULL);
	for (i = PARAMETER_IDENTITIES; i-- > 0;) {
		for (place = 0; place < values->count; place++) {
			struct followed *at = &values->followed[place], found = *at;

			if (strcmp(found.name, parameter_identity[i]) != 0)
				continue;
			memmove(at, at + 1, (values->count - place - 1) * sizeof(*at));
			values->followed[values->count - 1] = found;
			break;
		}
	}
}

struct parameters *parameters_with(struct parameter_table *table, const struct parameters *set,
	unsigned index, const char *value)
{
	struct parameter_values values;

	CHECK(index < parameter_count(table));
	parameter_values_read(set, &values);
	values.tracked[index] = value;
	return parameter_values_intern(table, &values);
}

static void overlay(struct parameter_table *table, struct parameter_values *values,
	const struct parameter_values *over)
{
	unsigned i;

	for (i = 0; i < parameter_count(table); i++) {
		if (over->tracked[i] != NULL)
			values->tracked[i] = over->tracked[i];
	}
}

struct parameters *parameters_merge(struct parameter_table *table,
	const struct parameters *base, const struct parameters *over)
{
	struct parameter_values values, above;
	unsigned i;

	parameter_values_read(base, &values);
	parameter_values_read(over, &above);
	overlay(table, &values, &above);
	for (i = 0; i < above.count; i++) {
		if (!parameter_values_follow(
			    &values, above.followed[i].name, above.followed[i].value))
			return NULL;
	}
	return parameter_values_intern(table, &values);
}

struct parameters *parameters_follow(struct parameter_table *table,
	const struct parameters *set, const struct parameters *of)
{
	struct parameter_values values, other;

	parameter_values_read(set, &values);
	parameter_values_read(of, &other);
	memcpy(values.followed, other.followed, other.count * sizeof(*other.followed));
	values.count = other.count;
	return parameter_values_intern(table, &values);
}

struct parameters *parameters_adopt(struct parameter_table *table,
	const struct parameters *client, const struct parameters *server)
{
	struct parameter_values values, above;

	parameter_values_read(client, &values);
	parameter_values_read(server, &above);
	overlay(table, &values, &above);
	return parameter_values_intern(table, &values);
}

struct parameters *parameters_doubt(
	struct parameter_table *table, const struct parameters *server)
{
	struct parameter_values values;
	unsigned i;

	parameter_values_read(server, &values);
	for (i = 0; i < values.count; i++)
		values.followed[i].value = NULL;
	return parameter_values_intern(table, &values);
}

struct parameters *parameters_doubt_both(struct parameter_table *table,
	const struct parameters *server, const struct parameters *client)
{
	struct parameter_values values, other;
	unsigned i;

	parameter_values_read(server, &values);
	parameter_values_read(client, &other);
	for (i = 0; i < values.count; i++)
		values.followed[i].value = NULL;
	for (i = 0; i < other.count; i++) {
		if (!parameter_values_follow(&values, other.followed[i].name, NULL))
			return NULL;
	}
	return parameter_values_intern(table, &values);
}

struct parameters *parameters_follow_also(struct parameter_table *table,
	const struct parameters *set, const char *name, const char *value)
{
	struct parameter_values values;

	parameter_values_read(set, &values);
	if (!parameter_values_follow(&values, name, value))
		return NULL;
	return parameter_values_intern(table, &values);
}

struct parameters *parameters_refollow(struct parameter_table *table,
	const struct parameters *set, const char *name, const char *value)
{
	struct parameter_values values;
	unsigned i;

	parameter_values_read(set, &values);
	for (i = 0; i < values.count; i++) {
		if (strcasecmp(values.followed[i].name, name) == 0)
			values.followed[i].value = value;
	}
	return parameter_values_intern(table, &values);
}

struct parameters *parameters_follow_unknown(struct parameter_table *table,
	const struct parameters *set, const struct parameters *known)
{
	char names[PARAMETERS_MAX][PARAMETER_NAME_SIZE];
	struct parameter_values values, other;
	unsigned i;

	parameter_values_read(set, &values);
	parameter_values_read(known, &other);
	for (i = 0; i < parameter_count(table); i++) {
		if (values.tracked[i] == NULL || other.tracked[i] != NULL)
			continue;
		parameter_name_lower(parameter_name(table, i), names[i]);
		if (!parameter_values_follow(&values, names[i], values.tracked[i]))
			return NULL;
		values.tracked[i] = NULL;
	}
	return parameter_values_intern(table, &values);
}
