/* SPDX-License-Identifier: ISC */
/*
 * The notifications of a simulation: what each NOTIFY was committed as, and which clients had to hear
 * it, or might.
 *
 * A client certainly listens on a channel from the answer to its LISTEN until it says UNLISTEN, and
 * possibly from the LISTEN until the answer to its UNLISTEN. Each notification must reach a client once,
 * in the order of the commits on its channel, and between its answers.
 */
#ifndef PGUSHER_TEST_SIM_NOTES_H
#define PGUSHER_TEST_SIM_NOTES_H

#include "support/simulation/sim_client.h"

/* Channels of clients. */
enum { SIM_CHANNELS = 3 };

/* The bit of this name, in quotes or without. The first SIM_CHANNELS are those of clients: n0, n1, ... */
unsigned sim_notes_bit(const char *name, size_t length);

/* The name of the channel with this index. NULL: there is none. */
const char *sim_notes_name(unsigned index);

/* Forgets everything. */
void sim_notes_clear(void);

/* A server has committed a NOTIFY of this token, a client's. */
void sim_notes_commit(unsigned token, unsigned channel);

/* The client sends this text. */
void sim_notes_sent(struct sim_client *client, const char *text);

/* The client has no request in flight and is in no transaction. */
void sim_notes_settled(struct sim_client *client);

/* The client was told that it may have missed some, or that it listens no more. */
void sim_notes_warned(struct sim_client *client);

/* The client receives it. Fails if it must not. */
void sim_notes_heard(struct sim_client *client, unsigned channel, unsigned token);

/* At the end: the client has heard all that it had to hear. */
void sim_notes_check(const struct sim_client *client);

/* How many were heard in all runs. */
extern unsigned long long sim_notes_count;

#endif
