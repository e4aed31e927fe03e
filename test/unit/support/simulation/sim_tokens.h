/* SPDX-License-Identifier: ISC */
/*
 * The record of each statement that a client has sent: which client, how often a server ran it,
 * and how it ended. Each statement carries a token, a number of its own, which answers repeat.
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
	unsigned executed; /* number of executions by servers */
	enum sim_outcome outcome;
	bool is_refused; /* a write, at a host that is read-only */
	bool skipped; /* its client knows that it was not run, so it must never be */
};

void sim_tokens_clear(void);

/* Creates a token of this client. */
unsigned sim_tokens_new(unsigned owner);

/* Returns the token's record. An unknown token fails the test. */
struct sim_token *sim_token(unsigned token);

/* The tokens in this message were not run, and must never be. */
void sim_tokens_skip(char letter, const uint8_t *body, size_t length);

#endif
