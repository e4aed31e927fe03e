/* SPDX-License-Identifier: ISC */
/* The SQL statements of sim_postgres: one function for each command word. */
#ifndef PGUSHER_TEST_SIM_POSTGRES_SQL_H
#define PGUSHER_TEST_SIM_POSTGRES_SQL_H

#include "support/postgres/sim_postgres.h"

enum sim_run {
	SIM_RUN_COMPLETE,
	SIM_RUN_FAILED, /* the error was appended */
	SIM_RUN_WAITS, /* for its outcome, or for the data of a COPY */
};

/* Runs one statement, with a parameter or without (NULL). */
enum sim_run sim_postgres_run(struct sim_postgres *pg, const char *text, const char *parameter);

/* Executes a portal for at most so many rows; 0: all. */
void sim_postgres_execute(struct sim_postgres *pg, struct sim_portal *portal, unsigned most);

/* Appends the description of its rows, if it has any; `whole`: of its parameters too. */
void sim_postgres_describe(struct sim_postgres *pg, const char *text, bool whole);

/* The slow statement has ended, with success or because it was interrupted. */
void sim_postgres_end_slow(struct sim_postgres *pg);

/* Whether this is the pooler's query that lifts statement_timeout before a question. */
bool sim_postgres_is_lift(const char *sql);

/* Runs it: begins a transaction in which there is no limit. */
void sim_postgres_lift(struct sim_postgres *pg);

/* The pooler's question for the state of the session, and the answer without its end. */
bool sim_postgres_is_question(const char *sql);
void sim_postgres_answer_question(struct sim_postgres *pg, const char *sql);

/* Handles a FunctionCall with this token. */
void sim_postgres_call(struct sim_postgres *pg, unsigned token);

/* For sim_postgres_sql.c: */

/* Appends an error, which starts skipping, or ends the query. */
void sim_postgres_fail(struct sim_postgres *pg, const char *sqlstate, const char *text);

void sim_postgres_end_transaction(struct sim_postgres *pg, bool good);

void sim_postgres_deallocate(struct sim_postgres *pg);

/* Keeps the statement under its name, which is free. */
void sim_postgres_keep(struct sim_postgres *pg, const struct sim_statement *statement);

/* Drops the statement with this name. Returns false when there is none. */
bool sim_postgres_drop(struct sim_postgres *pg, const char *name);

#endif
