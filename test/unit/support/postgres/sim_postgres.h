/* SPDX-License-Identifier: ISC */
/*
 * A model of one PostgreSQL session, small but strict about the protocol: transactions, implicit
 * ones too, errors that skip up to a Sync, named and unnamed statements, portals, COPY.
 *
 * It is used twice: as what stands behind a server connection, and, told nothing but what one
 * client says, as the oracle that knows what this client has to hear. Its SQL is statements
 * apart by `; `, each a word and (tN is a token, see sim_ledger) more:
 *
 *   row tN R            R rows that say tN, or tN/tM with a parameter tM
 *   show tN             a row that says tN=VALUE, the value of application_name
 *   fail tN             an error that says tN
 *   notice tN           a notice that says tN
 *   slow tN             as `row`, but it takes until it is finished or cancelled
 *   copyin tN, copybad tN, copyout tN R
 *   begin, commit, rollback, SET application_name='VALUE', RESET application_name, DISCARD ALL,
 *   DEALLOCATE ALL, DEALLOCATE NAME, UNLISTEN NAME
 *
 * Protocol: "Message Flow".
 */
#ifndef PGUSHER_TEST_SIM_POSTGRES_H
#define PGUSHER_TEST_SIM_POSTGRES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum { SIM_NAME = 64, SIM_TEXT = 128, SIM_QUERY = 512, SIM_STATEMENTS = 64, SIM_PORTALS = 12 };

/* In the words that we have for it. */
#define SIM_NO_STATEMENT "prepared statement did not exist"

/* Of a server that is told to end. */
#define SIM_LAST_WORDS "terminating connection"

struct sim_statement {
	char name[SIM_NAME], text[SIM_TEXT];
	bool used;
};

struct sim_portal {
	char name[16], text[SIM_TEXT], parameter[16];
	unsigned left; /* rows to come */
	bool used, started;
};

/* What becomes of the pooler's next SETs. */
enum sim_mishap { SIM_NO_MISHAP, SIM_SETS_REFUSED, SIM_SETS_CANCELED };

/* How they begin. */
#define SIM_SETS "BEGIN;SET "

enum sim_copy { SIM_NO_COPY, SIM_COPY_GOOD, SIM_COPY_BAD };

struct sim_postgres {
	bool is_real; /* false: an oracle, which asks the ledger how statements ended */
	bool one_owner; /* a session is one client's up to its DISCARD ALL */
	struct buffer out; /* said, and not taken away yet */
	size_t taken; /* of out */
	char status; /* of the next ReadyForQuery */
	bool implicit; /* in a transaction that nobody has begun */
	bool extended; /* what runs was begun by an Execute */
	bool skipping; /* up to a Sync */
	bool stuck; /* in a slow statement */
	bool interrupted; /* by a cancel request */
	bool over; /* heard Terminate */
	enum sim_mishap mishap;
	bool had_mishap; /* and it may end the client that it had them for */
	enum sim_copy copy;
	unsigned running; /* token of the slow statement, or of the COPY */
	unsigned
		owner; /* of the transaction, or with one_owner of the session; 0: nobody yet */
	char value[32], saved[32], told[32], start[32]; /* application_name */
	char query[SIM_QUERY]; /* the simple query, of which this is still to be run: */
	const char *rest; /* NULL: nothing */
	struct sim_statement statements[SIM_STATEMENTS];
	struct sim_statement refused; /* the last Parse, if it came in a failed transaction */
	struct sim_portal portals[SIM_PORTALS];
};

/* A new session, whose application_name is this. */
void sim_postgres_start(struct sim_postgres *pg, bool is_real, const char *application_name);

void sim_postgres_free(struct sim_postgres *pg);

/* One whole message, which must not come while it is stuck. */
void sim_postgres_hear(
	struct sim_postgres *pg, char letter, const uint8_t *body, size_t length);

/*
 * Go on with the slow statement, if it can: a server's when it was interrupted, or when `finish`
 * says so; an oracle's when the ledger knows how it ended.
 */
void sim_postgres_go_on(struct sim_postgres *pg, bool finish);

/*
 * Where we look after names a Parse of what the server has is answered by us, also in a failed
 * transaction: if that is what the session, an oracle, has refused last, it is not any more.
 */
void sim_postgres_forgive(struct sim_postgres *pg);

/* What it has said and was not taken yet. */
static inline size_t sim_postgres_said(const struct sim_postgres *pg)
{
	return pg->out.length - pg->taken;
}

/* So much of that has been taken. */
void sim_postgres_take(struct sim_postgres *pg, size_t length);

#endif
