/* SPDX-License-Identifier: ISC */
/*
 * A model of one PostgreSQL session, small but strict about the protocol: transactions,
 * implicit ones too, errors that skip messages up to a Sync, named and unnamed statements,
 * portals, COPY.
 *
 * It has two uses: as the session of a server connection, and as a test oracle, which receives
 * only what one client sends, and so computes the answers that this client must receive. Its
 * SQL is statements separated by `; `, each a command word and arguments (tN is a token, see
 * sim_tokens):
 *
 *   row tN R            R rows with the text tN, or tN/tM with a parameter tM
 *   show tN             a row with tN=VALUES, the values of all settings
 *   fail tN             an error with the text tN
 *   notice tN           a notice with the text tN
 *   write tN            an error at a host that is read-only
 *   slow tN             as `row`, but it runs until it is finished or cancelled
 *   copyin tN, copybad tN, copyout tN R
 *   begin, commit, rollback, commit and chain, rollback and chain, savepoint NAME, release NAME, rollback to NAME,
 *   SET [LOCAL] NAME='VALUE', SET ROLE NAME, SET NAME TO DEFAULT, RESET NAME, RESET ALL,
 *   select set_config('NAME','VALUE',LOCAL), do set_config(...): see sim_settings,
 *   create table, create temp table, drop table (the temporary one),
 *   declare c cursor with hold, close c,
 *   select pg_advisory_lock(), select pg_advisory_unlock(), DISCARD ALL, DEALLOCATE ALL, DEALLOCATE NAME,
 *   listen NAME, unlisten NAME, unlisten *, notify NAME, 'tN': see sim_notes,
 *   prepare NAME as STATEMENT, execute NAME('tN'): the statement with this parameter, or with that of
 *   the portal
 *
 * It answers the pooler's questions for its settings, and restores settings after a RESET.
 *
 * Protocol: "Message Flow".
 */
#ifndef PGUSHER_TEST_SIM_POSTGRES_H
#define PGUSHER_TEST_SIM_POSTGRES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "support/postgres/sim_settings.h"

enum {
	SIM_NOTICES = 8,
	SIM_NAME = 64,
	SIM_TEXT = 128,
	SIM_QUERY = 512,
	SIM_STATEMENTS = 64,
	SIM_PORTALS = 12
};

/* The error text that the pooler has for this too. */
#define SIM_NO_STATEMENT "prepared statement did not exist"

/* The FATAL error of a server that is shut down. */
#define SIM_SHUTDOWN_ERROR "terminating connection"

struct sim_statement {
	char name[SIM_NAME], text[SIM_TEXT];
	bool used;
	bool from_sql; /* by PREPARE */
};

struct sim_portal {
	char name[SIM_NAME], text[SIM_TEXT], parameter[16];
	unsigned left; /* rows not sent yet */
	bool used, started;
};

/* The statement and portal of the pooler's query that restores settings after a RESET. */
#define SIM_RESTORE "PGUSHER_RESTORE"

/* How the pooler's next SETs fail. */
enum sim_set_failure { SIM_SETS_SUCCEED, SIM_SETS_REFUSED, SIM_SETS_CANCELED };

/* How the pooler's SETs begin, if they are sent with the client's messages; clients add a blank. */
#define SIM_SETS "BEGIN;"

enum sim_copy { SIM_NO_COPY, SIM_COPY_GOOD, SIM_COPY_BAD };

struct sim_host;

struct sim_notice {
	char name[SIM_NAME], payload[16];
};

struct sim_postgres {
	bool is_real; /* false: an oracle, which takes the outcome of statements from the tokens */
	bool one_owner; /* the session belongs to one client up to its DISCARD ALL */
	struct buffer out; /* output, not taken by the caller yet */
	size_t taken; /* bytes of `out` */
	char status; /* of the next ReadyForQuery */
	bool implicit; /* in a transaction without a BEGIN */
	bool extended; /* the running statement was started by an Execute */
	bool skipping; /* messages are skipped up to a Sync */
	bool stuck; /* a slow statement runs */
	bool interrupted; /* a cancel request has arrived */
	bool over; /* Terminate was received */
	enum sim_set_failure set_failure;
	bool had_set_failure; /* SETs have failed: the client that they were for may be closed */
	enum sim_copy copy;
	unsigned running; /* token of the slow statement, or of the COPY */
	unsigned
		owner; /* client of the transaction, or with one_owner of the session; 0: none yet */
	struct sim_settings settings;
	struct sim_notice notices[SIM_NOTICES]; /* of this transaction */
	struct buffer
		news; /* notifications for this session, which are sent when it is at rest */
	bool at_rest; /* between ReadyForQuery and the next message, in no transaction */
	uint32_t pid;
	struct sim_host *host; /* where it runs; NULL: not simulated */
	bool told_standby, told_fenced; /* its last reports */
	unsigned database; /* sessions of one database hear each other */
	char query[SIM_QUERY]; /* the simple query, and the part of it that was not run yet: */
	const char *rest; /* NULL: all was run */
	struct sim_statement statements[SIM_STATEMENTS];
	struct sim_statement refused; /* the last Parse, if it came in a failed transaction */
	struct sim_portal portals[SIM_PORTALS];
};

/* Number of statements that EXECUTE has found on servers, in all runs. */
extern unsigned long long sim_postgres_executed;

/* Starts a session with this application_name. */
void sim_postgres_start(struct sim_postgres *pg, bool is_real, const char *application_name);

void sim_postgres_free(struct sim_postgres *pg);

/* Handles one whole message. A slow statement must not be running. */
void sim_postgres_handle(
	struct sim_postgres *pg, char letter, const uint8_t *body, size_t length);

/*
 * Continues after the slow statement, if it can: a server when it was interrupted, or when
 * `finish` is set; an oracle when the token has an outcome.
 */
void sim_postgres_go_on(struct sim_postgres *pg, bool finish);

/*
 * With max_prepared_statements the pooler itself answers a Parse of a statement that the server
 * has, even in a failed transaction. If the oracle has just refused this Parse, it takes the
 * refusal back.
 */
void sim_postgres_accept_refused(struct sim_postgres *pg);

/* The session hears this notification of another one, or of itself. */
void sim_postgres_hear(struct sim_postgres *pg, const struct sim_notice *notice, uint32_t pid);

/* The number of bytes of output that were not taken yet. */
static inline size_t sim_postgres_output(const struct sim_postgres *pg)
{
	return pg->out.length - pg->taken;
}

/* The statement with this name; NULL: there is none. */
const struct sim_statement *sim_postgres_find(struct sim_postgres *pg, const char *name);

/* Removes so many bytes of output. */
void sim_postgres_take(struct sim_postgres *pg, size_t length);

#endif
