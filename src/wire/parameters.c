/* SPDX-License-Identifier: ISC */
/*
 * A set is one block of bytes: for each name of the table, in its order, a byte that states
 * whether the value is known, and if so the value with its NUL; then the same for each
 * followed name, with the name and its NUL after the byte. So the block is also the key by
 * which a set is found, and reading a value means skipping those before it, which is fast for
 * a few names.
 *
 * The sets of a table are in an ordered tree: peers choose the content of sets, and a tree has
 * no worst case that a peer could provoke.
 */
#include "wire/parameters.h"

#include <bsd/sys/tree.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/text.h"
#include "wire/parameter_values.h"
#include "wire/writer.h"

struct parameters {
	RB_ENTRY(parameters) place;
	struct parameter_table *table;
	unsigned holders;
	uint32_t size;
	uint32_t followed; /* number of followed names */
	uint8_t content[];
};

RB_HEAD(parameters_tree, parameters);

struct parameter_table {
	struct parameters_tree sets;
	struct parameters *empty; /* the table holds one reference */
	unsigned count;
	char names[PARAMETERS_MAX][PARAMETER_NAME_SIZE];
};

static int compare_sets(struct parameters *a, struct parameters *b)
{
	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	return memcmp(a->content, b->content, a->size);
}

/* libbsd's RB_GENERATE_STATIC needs a macro that only its own headers have. */
#define TREE_FUNCTION static __attribute__((unused))
RB_PROTOTYPE_INTERNAL(parameters_tree, parameters, place, compare_sets, TREE_FUNCTION)
RB_GENERATE_INTERNAL(parameters_tree, parameters, place, compare_sets, TREE_FUNCTION)

/* ---- Unique blocks ---------------------------------------------------------------------- */

static const char *read_text(const char **at)
{
	const char *text = *at;

	*at += strlen(text) + 1;
	return text;
}

void parameter_values_read(const struct parameters *set, struct parameter_values *out)
{
	const char *at = (const char *)set->content;
	unsigned i;

	for (i = 0; i < set->table->count; i++) {
		const bool known = *at++ != 0;

		out->tracked[i] = known ? read_text(&at) : NULL;
	}
	out->count = set->followed;
	for (i = 0; i < set->followed; i++) {
		const bool known = *at++ != 0;

		out->followed[i].name = read_text(&at);
		out->followed[i].value = known ? read_text(&at) : NULL;
	}
}

static size_t size_of(const char *text)
{
	return text != NULL ? strlen(text) + 1 : 0;
}

static size_t content_size(
	const struct parameter_table *table, const struct parameter_values *values)
{
	size_t size = table->count + values->count;
	unsigned i;

	for (i = 0; i < table->count; i++)
		size += size_of(values->tracked[i]);
	for (i = 0; i < values->count; i++)
		size += size_of(values->followed[i].name) + size_of(values->followed[i].value);
	return size;
}

static uint8_t *write_text(uint8_t *at, const char *text)
{
	const size_t size = size_of(text);

	if (size > 0)
		memcpy(at, text, size);
	return at + size;
}

static void write_set(struct parameters *set, struct parameter_table *table, size_t size,
	const struct parameter_values *values)
{
	uint8_t *at = set->content;
	unsigned i;

	*set = (struct parameters){.table = table,
		.size = (uint32_t)size,
		.holders = 1,
		.followed = values->count};
	for (i = 0; i < table->count; i++) {
		*at++ = values->tracked[i] != NULL;
		at = write_text(at, values->tracked[i]);
	}
	for (i = 0; i < values->count; i++) {
		*at++ = values->followed[i].value != NULL;
		at = write_text(at, values->followed[i].name);
		at = write_text(at, values->followed[i].value);
	}
}

/*
 * Find the existing set with this content, if it is of usual size. Most lookups succeed,
 * without allocating.
 */
static struct parameters *find(
	struct parameter_table *table, size_t size, const struct parameter_values *values)
{
	union {
		struct parameters set;
		char room[512];
	} key;

	if (size > sizeof(key) - sizeof(key.set))
		return NULL;
	write_set(&key.set, table, size, values);
	return RB_FIND(parameters_tree, &table->sets, &key.set);
}

struct parameters *parameter_values_intern(
	struct parameter_table *table, const struct parameter_values *values)
{
	const size_t size = content_size(table, values);
	struct parameters *set = find(table, size, values), *present;

	if (set != NULL)
		return parameters_ref(set);
	if (size > PARAMETERS_SIZE_MAX)
		return NULL;
	set = malloc(sizeof(*set) + size);
	if (set == NULL)
		return NULL;
	write_set(set, table, size, values);
	present = RB_INSERT(parameters_tree, &table->sets, set);
	if (present == NULL)
		return set;
	free(set);
	return parameters_ref(present);
}

/* ---- Names ------------------------------------------------------------------------------ */

static const char *const always_tracked[] = {"DateStyle", "client_encoding", "TimeZone",
	"standard_conforming_strings", "application_name", "IntervalStyle", "scram_iterations",
	"search_path", "session_authorization"};

/* A dot separates an extension's prefix. */
bool parameter_name_is_legal(const char *name)
{
	const char *c;

	if (name[0] == '\0' || strchr("0123456789$.", name[0]) != NULL)
		return false;
	for (c = name; *c != '\0'; c++) {
		const bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');

		if (!letter && strchr("0123456789_$.", *c) == NULL)
			return false;
	}
	return c - name < PARAMETER_NAME_SIZE;
}

bool parameter_follows_its_set(const char *name)
{
	return strcasecmp(name, "default_transaction_read_only") == 0;
}

bool parameter_is_of_transaction(const char *name)
{
	return strcasecmp(name, "transaction_isolation") == 0 ||
		strcasecmp(name, "transaction_read_only") == 0 ||
		strcasecmp(name, "transaction_deferrable") == 0;
}

bool parameter_may_follow(const char *name)
{
	return !parameter_is_of_transaction(name) && strcasecmp(name, "seed") != 0;
}

bool parameter_is_name_list(const char *name)
{
	static const char *const lists[] = {"search_path", "temp_tablespaces",
		"session_preload_libraries", "local_preload_libraries"};
	unsigned i;

	for (i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		if (strcasecmp(name, lists[i]) == 0)
			return true;
	}
	return false;
}

bool parameter_is_time_limit(const char *name)
{
	return strcmp(name, "statement_timeout") == 0 || strcmp(name, "lock_timeout") == 0 ||
		strcmp(name, "transaction_timeout") == 0;
}

bool parameter_minds_case(const char *name)
{
	return parameter_is_name_list(name) || strcasecmp(name, "session_authorization") == 0;
}

void parameter_name_lower(const char *name, char out[PARAMETER_NAME_SIZE])
{
	size_t i;

	for (i = 0; name[i] != '\0'; i++)
		out[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + ('a' - 'A')
								 : name[i]);
	out[i] = '\0';
}

/* Returns 0 or an errno value. */
static int add_name(struct parameter_table *table, const char *name)
{
	if (!parameter_name_is_legal(name))
		return EINVAL;
	if (parameter_index(table, name) >= 0)
		return 0;
	if (table->count == PARAMETERS_MAX)
		return E2BIG;
	text_copy(table->names[table->count++], PARAMETER_NAME_SIZE, name);
	return 0;
}

static int add_names(struct parameter_table *table, const char *extra)
{
	char name[PARAMETER_NAME_SIZE];
	bool whole;
	size_t i;
	int error = 0;

	for (i = 0; i < sizeof(always_tracked) / sizeof(*always_tracked); i++)
		add_name(table, always_tracked[i]);
	while (extra != NULL && error == 0 &&
		text_next_item(&extra, TEXT_LIST_SEPARATORS, name, sizeof(name), &whole))
		error = whole ? add_name(table, name) : EINVAL;
	return error;
}

struct parameter_table *parameter_table_new(const char *extra)
{
	struct parameter_table *table = calloc(1, sizeof(*table));
	int error;

	if (table == NULL)
		return NULL;
	RB_INIT(&table->sets);
	error = add_names(table, extra);
	if (error == 0) {
		table->empty = parameter_values_intern(table, &(struct parameter_values){0});
		error = table->empty == NULL ? ENOMEM : 0;
	}
	if (error != 0) {
		parameter_table_free(table);
		errno = error;
		return NULL;
	}
	return table;
}

void parameter_table_free(struct parameter_table *table)
{
	if (table == NULL)
		return;
	parameters_unref(table->empty);
	CHECK(RB_EMPTY(&table->sets));
	free(table);
}

unsigned parameter_count(const struct parameter_table *table)
{
	return table->count;
}

/*
 * Whether two bytes can be equal apart from letter case: different letters differ in more than
 * that bit.
 */
static inline bool may_begin_alike(char a, char b)
{
	enum { CASE_BIT = 0x20 };

	return ((a ^ b) & ~CASE_BIT) == 0;
}

int parameter_index(const struct parameter_table *table, const char *name)
{
	unsigned i;

	for (i = 0; i < table->count; i++) {
		if (may_begin_alike(table->names[i][0], name[0]) &&
			strcasecmp(table->names[i], name) == 0)
			return (int)i;
	}
	return -1;
}

const char *parameter_name(const struct parameter_table *table, unsigned index)
{
	CHECK(index < table->count);
	return table->names[index];
}

/* ---- Sets ------------------------------------------------------------------------------- */

struct parameters *parameters_empty(struct parameter_table *table)
{
	return parameters_ref(table->empty);
}

struct parameters *parameters_ref(struct parameters *set)
{
	set->holders++;
	return set;
}

void parameters_unref(struct parameters *set)
{
	if (set == NULL || --set->holders > 0)
		return;
	RB_REMOVE(parameters_tree, &set->table->sets, set);
	free(set);
}

bool parameters_has_followed(const struct parameters *set)
{
	return set->followed > 0;
}

const char *parameters_get(const struct parameters *set, unsigned index)
{
	const char *at = (const char *)set->content;
	unsigned i;

	CHECK(index < set->table->count);
	for (i = 0; i < index; i++) {
		if (*at++ != 0)
			read_text(&at);
	}
	return *at != 0 ? at + 1 : NULL;
}

const char *parameters_get_followed(const struct parameters *set, const char *name)
{
	struct parameter_values values;
	unsigned i;

	parameter_values_read(set, &values);
	for (i = 0; i < values.count; i++) {
		if (strcasecmp(values.followed[i].name, name) == 0)
			return values.followed[i].value;
	}
	return NULL;
}

void parameters_report(const struct parameters *set, struct buffer *buffer)
{
	struct parameter_values values;
	unsigned i;

	parameter_values_read(set, &values);
	for (i = 0; i < set->table->count; i++) {
		if (values.tracked[i] != NULL)
			writer_parameter_status(
				buffer, set->table->names[i], values.tracked[i]);
	}
}

struct parameter_table *parameters_table(const struct parameters *set)
{
	return set->table;
}

size_t parameters_size(const struct parameters *set)
{
	return sizeof(*set) + set->size;
}
