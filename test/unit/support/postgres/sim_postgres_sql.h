/* SPDX-License-Identifier: ISC */
/* The statements of sim_postgres: what each word of its SQL does. */
#ifndef PGUSHER_TEST_SIM_POSTGRES_SQL_H
#define PGUSHER_TEST_SIM_POSTGRES_SQL_H

#include "support/postgres/sim_postgres.h"

enum sim_run {
	SIM_RUN_COMPLETE,
	SIM_RUN_FAILED, /* which was told */
	SIM_RUN_WAITS, /* for its end, or for the data of a COPY */
};

/* Run one statement, with a parameter if there is one (else NULL). */
enum sim_run sim_postgres_run(struct sim_postgres *pg, const char *text, const char *parameter);

/* At most so many rows of the portal; 0: all. */
void sim_postgres_execute(struct sim_postgres *pg, struct sim_portal *portal, unsigned most);

/* What its rows look like, if it has any; `whole`: its parameters, too. */
void sim_postgres_describe(struct sim_postgres *pg, const char *text, bool whole);

/* The slow statement has ended, by itself or because it was interrupted. */
void sim_postgres_end_slow(struct sim_postgres *pg);

/* A FunctionCall with this token. */
void sim_postgres_call(struct sim_postgres *pg, unsigned token);

/* For the words: */

/* An error; it skips, or ends the query. */
void sim_postgres_fail(struct sim_postgres *pg, const char *sqlstate, const char *text);

void sim_postgres_end_transaction(struct sim_postgres *pg, bool good);

void sim_postgres_deallocate(struct sim_postgres *pg);

/* The statement with this name; false: there is none. */
bool sim_postgres_drop(struct sim_postgres *pg, const char *name);

#endif
