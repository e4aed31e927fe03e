/* SPDX-License-Identifier: ISC */
/* SHOW STATEMENTS: prepared statements, each once, whoever has them. */
#include "admin/console/topics.h"

static const struct column columns[] = {
	{"id", COLUMN_INT8},
	{"name", COLUMN_TEXT}, /* on servers */
	{"clients", COLUMN_INT4}, /* names that clients have for it */
	{"servers", COLUMN_INT4},
	{"parses", COLUMN_INT8}, /* by clients, as the next */
	{"binds", COLUMN_INT8},
	{"size", COLUMN_INT4},
	{"generation", COLUMN_INT4}, /* how often its plans were given up */
	{"parameter_types", COLUMN_INT4}, /* how many were told */
	{"query", COLUMN_TEXT},
};

static void tell(struct telling *telling, void *thing, unsigned kind)
{
	const struct statement *statement = thing;
	struct result *result = &telling->result;

	(void)kind;
	/* Unnamed ones are nobody's but their client's. */
	if (statement->names == 0 && statement->servers == 0)
		return;
	result_begin_row(result);
	result_count(result, statement->id);
	result_text(result, statement->name);
	result_number(result, statement->names);
	result_number(result, statement->servers);
	result_count(result, statement->parses);
	result_count(result, statement->binds);
	result_number(result, (int64_t)statement_size(statement));
	result_number(result, statement->generation);
	result_number(result, statement_parameter_types(statement));
	result_text(result, statement_text(statement));
	result_end_row(result);
}

/* In the order of their numbers, which is that in which they came. */
static void note(struct telling *telling)
{
	struct statement *statement, *next;

	HASH_ITER (by_content, telling->registry->statements.by_content, statement, next)
		telling_note(telling, &statement->handle, statement, 0);
}

static const struct topic_walk walk = {.note = note, .tell = tell};

const struct topic show_statements = WALKED_TOPIC("STATEMENTS", columns, &walk);
