/* SPDX-License-Identifier: ISC */
/*
 * What happens to the simulated hosts: they die with all their servers, hang, start, are promoted,
 * demoted, fenced, fall behind. And what must hold, whatever happens: see sim_moves_check().
 */
#ifndef PGUSHER_TEST_SIM_MOVES_H
#define PGUSHER_TEST_SIM_MOVES_H

#include "support/simulation/sim_client.h"
#include "support/simulation/sim_server.h"

/* Begins a run, after sim_hosts_draw(). */
void sim_moves_begin(void);

/* Number of events, and of pairs at such hosts, in all runs. */
extern unsigned long long sim_moves_count, sim_moves_pairs;

/* Draws an event. Returns false if the run has no hosts, or it is impossible now. */
bool sim_moves_act(void);

/* In the end each database has a host of each role that lives; others may not. */
void sim_moves_heal(void);

/*
 * To be called after each step. No server stays with a pool that must not use its host, as far as the
 * pooler knows it; connections that watch hosts serve no client, and do not count for the size of a
 * pool.
 */
void sim_moves_check(void);

/* Before each step: which client is paired with a server of which host. */
void sim_moves_note_pairs(void);

/* After it: clients may have lost servers of a primary that has a successor now. */
void sim_moves_note_losses(void);

/* The pooler pairs them. Fails the test if the pool must not use the server's host. */
void sim_moves_check_pair(const struct client_link *client, const struct server_link *server);

/* The pooler's server connects to the host from now on, or to none; and: the host has answered. */
void sim_moves_check_use(const struct server_link *server, const struct host *host);
void sim_moves_host_answers(const struct host *host);

/* At rest after sim_moves_heal(), with clients: the pooler must know the truth. */
void sim_moves_check_settled(void);

void sim_moves_print(void);

#endif
