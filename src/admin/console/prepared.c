/* SPDX-License-Identifier: ISC */
#include "admin/console/prepared.h"

#include <stdlib.h>
#include <string.h>

struct console_statement *prepared_find_statement(
	const struct prepared *prepared, const char *name)
{
	struct console_statement *statement;

	LIST_FOREACH(statement, &prepared->statements, entry)
	{
		if (strcmp(statement->name, name) == 0)
			return statement;
	}
	return NULL;
}

struct console_portal *prepared_find_portal(const struct prepared *prepared, const char *name)
{
	struct console_portal *portal;

	LIST_FOREACH(portal, &prepared->portals, entry)
	{
		if (strcmp(portal->name, name) == 0)
			return portal;
	}
	return NULL;
}

/* --- texts -------------------------------------------------------------------------------- */

static struct console_query *new_query(
	struct prepared *prepared, const struct answer_shape *shape, const char *text)
{
	const size_t length = strlen(text);
	struct console_query *query = NULL;

	if (length <= PREPARED_TEXT_MAX - prepared->text_bytes)
		query = malloc(sizeof(*query) + length + 1);
	if (!query)
		return NULL;
	*query = (struct console_query){.references = 1, .shape = *shape, .length = length};
	memcpy(query->text, text, length + 1);
	prepared->text_bytes += length;
	return query;
}

static void release_query(struct prepared *prepared, struct console_query *query)
{
	if (--query->references > 0)
		return;
	prepared->text_bytes -= query->length;
	free(query);
}

/* --- statements --------------------------------------------------------------------------- */

struct console_statement *prepared_add_statement(struct prepared *prepared, const char *name,
	const char *text, const struct answer_shape *shape)
{
	const size_t size = strlen(name) + 1;
	struct console_statement *statement = NULL;
	struct console_query *query = NULL;

	if (prepared->statement_count < PREPARED_STATEMENTS && size <= PREPARED_NAME_SIZE)
		query = new_query(prepared, shape, text);
	if (query)
		statement = malloc(sizeof(*statement) + size);
	if (!statement) {
		if (query)
			release_query(prepared, query);
		return NULL;
	}
	statement->query = query;
	memcpy(statement->name, name, size);
	LIST_INSERT_HEAD(&prepared->statements, statement, entry);
	prepared->statement_count++;
	return statement;
}

void prepared_drop_statement(struct prepared *prepared, struct console_statement *statement)
{
	if (!statement)
		return;
	LIST_REMOVE(statement, entry);
	prepared->statement_count--;
	release_query(prepared, statement->query);
	free(statement);
}

/* --- portals ------------------------------------------------------------------------------ */

struct console_portal *prepared_add_portal(
	struct prepared *prepared, const char *name, struct console_query *query)
{
	const size_t size = strlen(name) + 1;
	struct console_portal *portal = NULL;

	if (prepared->portal_count < PREPARED_PORTALS && size <= PREPARED_NAME_SIZE)
		portal = calloc(1, sizeof(*portal) + size);
	if (!portal)
		return NULL;
	query->references++;
	portal->query = query;
	buffer_init_secret(&portal->answer);
	memcpy(portal->name, name, size);
	LIST_INSERT_HEAD(&prepared->portals, portal, entry);
	prepared->portal_count++;
	return portal;
}

void prepared_drop_portal(struct prepared *prepared, struct console_portal *portal)
{
	if (!portal)
		return;
	LIST_REMOVE(portal, entry);
	prepared->portal_count--;
	release_query(prepared, portal->query);
	buffer_free(&portal->answer);
	show_stream_free(portal->show);
	free(portal);
}

void prepared_drop_portals(struct prepared *prepared)
{
	while (!LIST_EMPTY(&prepared->portals))
		prepared_drop_portal(prepared, LIST_FIRST(&prepared->portals));
}

void prepared_drop_statements(struct prepared *prepared)
{
	while (!LIST_EMPTY(&prepared->statements))
		prepared_drop_statement(prepared, LIST_FIRST(&prepared->statements));
}

void prepared_drop_all(struct prepared *prepared)
{
	prepared_drop_portals(prepared);
	prepared_drop_statements(prepared);
}

size_t prepared_held(const struct prepared *prepared)
{
	const struct console_portal *portal;
	size_t held = 0;

	LIST_FOREACH(portal, &prepared->portals, entry)
	held += portal->answer.length + show_stream_held(portal->show);
	return held;
}
