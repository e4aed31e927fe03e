/* SPDX-License-Identifier: ISC */
/* A table of statements, on a loop. The end of a turn frees statements without references. */
#ifndef PGUSHER_TEST_FAKE_STATEMENTS_H
#define PGUSHER_TEST_FAKE_STATEMENTS_H

#include "model/statement.h"

struct statement_world {
	struct loop loop;
	struct keyed_hash hash;
	struct statement_table table;
};

/*
 * cmocka's set-up and tear-down. The state is a struct statement_world; its table must be empty
 * at the end.
 */
int statement_world_set_up(void **state);
int statement_world_tear_down(void **state);

/* The statement of this query, without parameter types. It holds a reference. */
struct statement *statement_world_open(struct statement_world *world, const char *query);

/* Ends the turn. */
void statement_world_turn(struct statement_world *world);

#endif
