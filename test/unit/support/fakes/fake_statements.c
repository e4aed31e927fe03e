/* SPDX-License-Identifier: ISC */
#include "support/fakes/fake_statements.h"

#include <stdlib.h>
#include <string.h>

int fake_statements_set_up(void **state)
{
	static const uint8_t key[KEYED_HASH_KEY_SIZE] = "not for others";
	struct fake_statements *world = calloc(1, sizeof(*world));

	if (!world || !loop_init(&world->loop, &world->clock) ||
		!keyed_hash_init(&world->hash, key))
		return -1;
	statement_table_init(&world->table, &world->loop, &world->hash, &world->last_id);
	*state = world;
	return 0;
}

int fake_statements_tear_down(void **state)
{
	struct fake_statements *world = *state;
	uint64_t bytes, count;

	loop_end_turn(&world->loop);
	bytes = world->table.bytes;
	count = world->table.count;
	statement_table_free(&world->table);
	keyed_hash_free(&world->hash);
	loop_free(&world->loop);
	free(world);
	return bytes == 0 && count == 0 ? 0 : -1;
}

struct statement *fake_statements_open(struct fake_statements *world, const char *query)
{
	uint8_t content[128] = {0};
	const size_t length = strlen(query);

	memcpy(content, query, length);
	return statement_open(&world->table, content, length + 3);
}

void fake_statements_turn(struct fake_statements *world)
{
	loop_end_turn(&world->loop);
}
