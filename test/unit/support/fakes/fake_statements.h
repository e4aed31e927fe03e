/* SPDX-License-Identifier: ISC */
/* A table of statements, on a loop. The end of a turn frees statements without references. */
#ifndef PGUSHER_TEST_FAKE_STATEMENTS_H
#define PGUSHER_TEST_FAKE_STATEMENTS_H

#include "model/statement.h"

struct fake_statements {
	struct loop loop;
	struct loop_clock clock;
	struct keyed_hash hash;
	struct statement_table table;
	uint64_t last_id;
};

/*
 * cmocka's set-up and tear-down. The state is a struct fake_statements; its table must be empty
 * at the end.
 */
int fake_statements_set_up(void **state);
int fake_statements_tear_down(void **state);

/* The statement of this query, without parameter types. It holds a reference. */
struct statement *fake_statements_open(struct fake_statements *world, const char *query);

/* Ends the turn. */
void fake_statements_turn(struct fake_statements *world);

#endif
