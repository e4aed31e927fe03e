/* SPDX-License-Identifier: ISC */
#include "wire/parameter_draft.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void parameter_draft_begin(struct parameter_draft *draft, struct parameter_table *table)
{
	draft->table = table;
	memset(draft->values.tracked, 0, sizeof(draft->values.tracked));
	draft->values.count = 0;
}

static void drop(const char *text)
{
	free((void *)text);
}

bool parameter_draft_track(struct parameter_draft *draft, unsigned index, const char *value)
{
	char *copy = strdup(value);

	CHECK(index < parameter_count(draft->table));
	if (copy == NULL)
		return false;
	drop(draft->values.tracked[index]);
	draft->values.tracked[index] = copy;
	return true;
}

/* Replace the value only; the name is there already. */
static enum drafted replace(struct followed *followed, const char *value)
{
	char *copy = value != NULL ? strdup(value) : NULL;

	if (value != NULL && copy == NULL)
		return DRAFTED_NO_MEMORY;
	drop(followed->value);
	followed->value = copy;
	return DRAFTED;
}

enum drafted parameter_draft_follow(
	struct parameter_draft *draft, const char *name, const char *value)
{
	struct parameter_values *values = &draft->values;
	char lower[PARAMETER_NAME_SIZE];
	char *name_copy, *value_copy;
	unsigned place;
	bool present;

	if (!parameter_name_is_legal(name))
		return DRAFTED_NOT;
	parameter_name_lower(name, lower);
	place = parameter_values_place(values, lower, &present);
	if (present)
		return replace(&values->followed[place], value);
	if (values->count == PARAMETERS_FOLLOWED_MAX)
		return DRAFTED_NOT;
	name_copy = strdup(lower);
	value_copy = value != NULL ? strdup(value) : NULL;
	if (name_copy == NULL || (value != NULL && value_copy == NULL)) {
		free(name_copy);
		free(value_copy);
		return DRAFTED_NO_MEMORY;
	}
	parameter_values_follow(values, name_copy, value_copy);
	return DRAFTED;
}

void parameter_draft_drop(struct parameter_draft *draft)
{
	struct parameter_values *values = &draft->values;
	unsigned i;

	for (i = 0; i < parameter_count(draft->table); i++) {
		drop(values->tracked[i]);
		values->tracked[i] = NULL;
	}
	for (i = 0; i < values->count; i++) {
		drop(values->followed[i].name);
		drop(values->followed[i].value);
	}
	values->count = 0;
}

struct parameters *parameter_draft_end(struct parameter_draft *draft)
{
	struct parameters *set = parameter_values_intern(draft->table, &draft->values);

	parameter_draft_drop(draft);
	return set;
}
