/* SPDX-License-Identifier: ISC */
/* SHOW SIZING: pools with pool_size = auto. */
#include "admin/show/show_stream.h"

static const struct column columns[] = {
	{"database", COLUMN_TEXT},
	{"user", COLUMN_TEXT},
	{"pool_size", COLUMN_INT4},
	{"servers", COLUMN_INT4},
	{"host", COLUMN_TEXT},
	{"cores", COLUMN_INT4},
	{"cores_from", COLUMN_TEXT},
	{"max_connections", COLUMN_INT4},
	{"reserved", COLUMN_INT4},
	{"other_pools", COLUMN_INT4},
	{"sharing_pools", COLUMN_INT4},
	{"processes", COLUMN_INT4},
	{"decided_by", COLUMN_TEXT},
	{"why", COLUMN_TEXT},
};

static void add_unless_zero(struct result *result, unsigned number)
{
	if (number > 0)
		result_number(result, number);
	else
		result_text(result, NULL);
}

static void add_nothing(struct result *result, const struct pool *pool)
{
	/* host to decided_by */
	for (int i = 0; i < 9; i++)
		result_text(result, NULL);
	result_text(result,
		pool->auto_size > 0 ? "as in the process before: no server has been asked yet"
				    : "not known yet: no server has logged in");
}

static void add_facts(struct result *result, const struct pool_sizing *own)
{
	const struct sizing_facts *facts = &own->facts;
	const bool tells = facts->max_connections > 0;
	struct buffer why = {0};

	result_text(result, own->host);
	add_unless_zero(result, facts->cores);
	result_text(result, cores_source_name(facts->cores_from));
	add_unless_zero(result, facts->max_connections);
	if (tells)
		result_number(result, facts->reserved);
	else
		result_text(result, NULL);
	result_number(result, facts->fixed);
	result_number(result, facts->pools);
	result_number(result, facts->processes);
	result_text(result, sizing_bound_name(own->sizing.bound));
	sizing_explain(&own->sizing, facts, &why);
	buffer_append(&why, "", 1);
	result_text(result, why.failed ? NULL : (const char *)why.data);
	buffer_free(&why);
}

static void add_rows(struct show_stream *show, void *object, unsigned kind)
{
	const struct pool *pool = object;
	struct result *result = &show->result;

	(void)kind;
	if (!pool->sizing)
		return;
	result_begin_row(result);
	result_text(result, pool->label);
	result_text(result, pool->user->name);
	result_number(result, pool_size(pool));
	result_number(result, pool_servers(pool));
	if (pool->sizing->sizing.size > 0)
		add_facts(result, pool->sizing);
	else
		add_nothing(result, pool);
	result_end_row(result);
}

static void list(struct show_stream *show)
{
	struct pool *pool;

	registry_sort(show->registry);
	TAILQ_FOREACH (pool, &show->registry->pools, in_registry) {
		if (pool->sizing)
			show_stream_add_object(show, &pool->handle, pool, 0);
	}
}

static const struct topic_walk walk = {.list = list, .add_rows = add_rows};

const struct topic show_sizing = WALKED_TOPIC("SIZING", columns, &walk);
