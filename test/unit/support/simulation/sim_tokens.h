/* SPDX-License-Identifier: ISC */
/*
 * What the simulation knows of each statement that was ever asked for: whose it is, how often a
 * server ran it, and how it ended. Each carries a token, a number of its own, which answers echo.
 */
#ifndef PGUSHER_TEST_SIM_TOKENS_H
#define PGUSHER_TEST_SIM_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a slow statement ended. */
enum sim_outcome { SIM_NOT_ENDED, SIM_DONE, SIM_CANCELED };

struct sim_token {
	unsigned owner; /* the client's number */
	unsigned executed; /* by servers */
	enum sim_outcome outcome;
	bool skipped; /* its client knows that it did not run, and never will */
};

void sim_ledger_clear(void);

/* A new token of this client. */
unsigned sim_ledger_new(unsigned owner);

/* There must be such a token: what was made up by nobody fails the test. */
struct sim_token *sim_token(unsigned token);

/* No server has run, or will run, the tokens that stand in this message. */
void sim_ledger_skip(char letter, const uint8_t *body, size_t length);

#endif
