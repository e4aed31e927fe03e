/* SPDX-License-Identifier: ISC */
/*
 * A set is one block of bytes: for each name of the table, in its order, a byte that says
 * whether the value is known, and if so the value with its NUL. Thus the block is also the key
 * by which a set is found again, and to get a value is to step over those before it, which is
 * short work for a handful of names.
 *
 * The sets of a table stand in an ordered tree: what they hold is chosen by peers, and a tree
 * has no bad case that a peer could aim at.
 */
#include "wire/parameters.h"

#include <bsd/sys/tree.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/text.h"
#include "wire/sql.h"
#include "wire/writer.h"

enum { NAME_SIZE = 64 }; /* PostgreSQL's own limit for names, NUL included */

struct parameters {
	RB_ENTRY(parameters) place;
	struct parameter_table *table;
	unsigned holders;
	uint32_t size;
	uint8_t content[];
};

RB_HEAD(parameters_tree, parameters);

struct parameter_table {
	struct parameters_tree sets;
	struct parameters *empty; /* one hold on it is the table's */
	unsigned count;
	char names[PARAMETERS_MAX][NAME_SIZE];
};

/* The values of a set side by side; NULL: unknown. They point into the set. */
struct values {
	const char *at[PARAMETERS_MAX];
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

/* ---- One block per content -------------------------------------------------------------- */

static void read_values(const struct parameters *set, struct values *out)
{
	const char *at = (const char *)set->content;
	unsigned i;

	for (i = 0; i < set->table->count; i++) {
		const bool known = *at++ != 0;

		out->at[i] = known ? at : NULL;
		if (known)
			at += strlen(at) + 1;
	}
}

static size_t content_size(const struct parameter_table *table, const struct values *values)
{
	size_t size = table->count;
	unsigned i;

	for (i = 0; i < table->count; i++) {
		if (values->at[i] != NULL)
			size += strlen(values->at[i]) + 1;
	}
	return size;
}

static void write_values(struct parameters *set, const struct values *values)
{
	uint8_t *at = set->content;
	unsigned i;

	for (i = 0; i < set->table->count; i++) {
		*at++ = values->at[i] != NULL;
		if (values->at[i] != NULL) {
			const size_t size = strlen(values->at[i]) + 1;

			memcpy(at, values->at[i], size);
			at += size;
		}
	}
}

static void write_set(struct parameters *set, struct parameter_table *table, size_t size,
	const struct values *values)
{
	*set = (struct parameters){.table = table, .size = (uint32_t)size, .holders = 1};
	write_values(set, values);
}

/* The set of this content, if it is there and of usual size: most are, and need no memory. */
static struct parameters *find(
	struct parameter_table *table, size_t size, const struct values *values)
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

/* The one set of this content: the one that is there already, or a new one. */
static struct parameters *intern(struct parameter_table *table, const struct values *values)
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
	"standard_conforming_strings", "application_name"};

/* It will stand in SQL of ours. A dot sets an extension's prefix apart. */
static bool is_parameter_name(const char *name)
{
	const char *c;

	if (strchr("0123456789$.", name[0]) != NULL)
		return false;
	for (c = name; *c != '\0'; c++) {
		const bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');

		if (!letter && strchr("0123456789_$.", *c) == NULL)
			return false;
	}
	return true;
}

/* Returns 0 or an errno. */
static int add_name(struct parameter_table *table, const char *name)
{
	if (!is_parameter_name(name))
		return EINVAL;
	if (parameter_index(table, name) >= 0)
		return 0;
	if (table->count == PARAMETERS_MAX)
		return E2BIG;
	text_copy(table->names[table->count++], NAME_SIZE, name);
	return 0;
}

static int add_names(struct parameter_table *table, const char *extra)
{
	char name[NAME_SIZE];
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
		table->empty = intern(table, &(struct values){0});
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

/* May they be the same but for the case of letters? Two different letters differ in more. */
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

struct parameters *parameters_with(struct parameter_table *table, const struct parameters *set,
	unsigned index, const char *value)
{
	struct values values;

	CHECK(index < table->count);
	read_values(set, &values);
	values.at[index] = value;
	return intern(table, &values);
}

struct parameters *parameters_overlay(struct parameter_table *table,
	const struct parameters *base, const struct parameters *over)
{
	struct values values, above;
	unsigned i;

	read_values(base, &values);
	read_values(over, &above);
	for (i = 0; i < table->count; i++) {
		if (above.at[i] != NULL)
			values.at[i] = above.at[i];
	}
	return intern(table, &values);
}

struct parameters *parameters_adopt(struct parameter_table *table,
	const struct parameters *client, const struct parameters *server)
{
	return parameters_overlay(table, client, server);
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

const char *parameters_get(const struct parameters *set, unsigned index)
{
	struct values values;

	CHECK(index < set->table->count);
	read_values(set, &values);
	return values.at[index];
}

void parameters_report(const struct parameters *set, struct buffer *buffer)
{
	struct values values;
	unsigned i;

	read_values(set, &values);
	for (i = 0; i < set->table->count; i++) {
		if (values.at[i] != NULL)
			writer_parameter_status(buffer, set->table->names[i], values.at[i]);
	}
}

/* ---- Setting a server's to a client's --------------------------------------------------- */

/* A list of names is the one kind of value that SQL does not take as one literal. */
static bool append_value(struct buffer *sql, const char *name, const char *value)
{
	if (strcasecmp(name, "search_path") == 0)
		return sql_append_name_list(sql, value);
	sql_append_literal(sql, value);
	return true;
}

static bool append_set(struct buffer *sql, const char *name, const char *value)
{
	bool good;

	buffer_append(sql, "SET ", 4);
	buffer_append(sql, name, strlen(name));
	buffer_append(sql, "=", 1);
	good = append_value(sql, name, value);
	buffer_append(sql, ";", 1);
	return good && !sql->failed;
}

int parameters_difference(
	const struct parameters *client, const struct parameters *server, struct buffer *sql)
{
	const size_t start = sql->length;
	struct values wanted, present;
	unsigned i;
	int count = 0;

	if (client == server)
		return 0;
	CHECK(client->table->count == server->table->count);
	read_values(client, &wanted);
	read_values(server, &present);
	for (i = 0; i < client->table->count; i++) {
		if (wanted.at[i] == NULL || present.at[i] == NULL ||
			strcasecmp(wanted.at[i], present.at[i]) == 0)
			continue;
		if (!append_set(sql, client->table->names[i], wanted.at[i])) {
			sql->length = start;
			return -1;
		}
		count++;
	}
	return count;
}
