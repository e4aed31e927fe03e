/* SPDX-License-Identifier: ISC */
/* A table of statements, and a loop whose turns free those without references. */
#ifndef PGUSHER_TEST_STATEMENT_WORLD_H
#define PGUSHER_TEST_STATEMENT_WORLD_H

#include "model/statement.h"

struct statement_world {
	struct loop loop;
	struct keyed_hash hash;
	struct statement_table table;
};

/* cmocka's set-up and tear-down: the state is a struct statement_world, which ends empty. */
int statement_world_set_up(void **state);
int statement_world_tear_down(void **state);

/* The statement of this query, without types; counted. */
struct statement *statement_world_open(struct statement_world *world, const char *query);

/* End the turn. */
void statement_world_turn(struct statement_world *world);

#endif
