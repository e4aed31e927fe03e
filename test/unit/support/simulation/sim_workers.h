/* SPDX-License-Identifier: ISC */
/*
 * Several workers in one simulation, all in one thread: which loop runs its next turn, and so when its mail
 * is delivered, is drawn. Each database is at home in one registry; clients arrive at any worker.
 *
 * What must hold between workers is checked here: what one owns is in no list, wheel or slab of
 * another; each accepted client is at one place; clients of a pool get servers in their order.
 */
#ifndef PGUSHER_TEST_SIM_WORKERS_H
#define PGUSHER_TEST_SIM_WORKERS_H

#include "support/simulation/sim_client.h"

/*
 * Whether limits that several databases share (max_user_connections, max_server_connections) hold for the
 * whole process. If not, runs with several workers do without them.
 */
enum { SIM_SHARES_LIMITS = 1 };

/* Draws the number of databases of a run with several workers, and their section of the configuration. */
void sim_workers_draw(char *out, size_t size);

/* After fake_start(). */
void sim_workers_begin(void);

/* One turn of this worker's loop, or of a drawn one. */
void sim_workers_turn_of(unsigned worker);
void sim_workers_turn(void);

/* The operator does something to one database, if there are several workers. Returns false if not. */
bool sim_workers_act(void);

/* All databases and clients go on. */
void sim_workers_heal(void);

/* Has the operator killed the database in this step? */
bool sim_workers_was_killed(unsigned database);
void sim_workers_forget_kills(void);

/* At this moment. */
void sim_workers_check_pair(const struct client_link *client, const struct server_link *server);

/* After each step. */
void sim_workers_check(void);

/* In all runs: clients that were delivered by mail, and databases that were not where they arrived. */
extern unsigned long long sim_workers_mails;

#endif
