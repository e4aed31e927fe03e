/* SPDX-License-Identifier: ISC */
/*
 * SHOW STATEMENTS: prepared statements, each once, however many clients and servers have it; but each
 * worker has its own for the same text.
 *
 * Texts may contain literals, which are data of the databases: only administrators see them, and
 * for other users the column is NULL, also where WHERE and ORDER BY look at it.
 */
#include "admin/show/show_stream.h"

static const struct column columns[] = {
	{"id", COLUMN_INT8},
	{"name", COLUMN_TEXT}, /* on servers */
	{"clients", COLUMN_INT4}, /* names that clients have for it */
	{"servers", COLUMN_INT4},
	{"parses", COLUMN_INT8}, /* by clients */
	{"binds", COLUMN_INT8}, /* by clients */
	{"size", COLUMN_INT4},
	{"generation", COLUMN_INT4}, /* how often its plans were dropped */
	{"parameter_types", COLUMN_INT4}, /* how many types Parse gave */
	{"query", COLUMN_TEXT},
};

static void add_rows(struct show_stream *show, void *object, unsigned kind)
{
	const struct statement *statement = object;
	struct result *result = &show->result;

	(void)kind;
	/* Unnamed statements are private to their client. */
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
	result_text(result, show->client->admin ? statement_text(statement) : NULL);
	result_end_row(result);
}

/* Returns the worker whose next statement is the oldest; NULL: there are no more. */
static struct statement **oldest(struct statement *next[WORKERS_MOST], unsigned workers)
{
	struct statement **found = NULL;

	for (unsigned i = 0; i < workers; i++) {
		if (next[i] && (!found || next[i]->id < (*found)->id))
			found = &next[i];
	}
	return found;
}

/* In the order of their ids, which is the order in which they were made. */
static void list(struct show_stream *show)
{
	const struct process *process = show->registry->process;
	struct statement *next[WORKERS_MOST], **statement;
	const struct registry *each;

	EACH_REGISTRY (each, process)
		next[each->number] = each->statements.by_content;
	while ((statement = oldest(next, process->workers)) != NULL) {
		show_stream_add_object(show, &(*statement)->handle, *statement, 0);
		*statement = (*statement)->by_content.next;
	}
}

static const struct topic_walk walk = {.list = list, .add_rows = add_rows};

const struct topic show_statements = WALKED_TOPIC("STATEMENTS", columns, &walk);
