/* SPDX-License-Identifier: ISC */
/*
 * The simulated environment of one or more registries: clients, servers, cancel requests, an operator,
 * and time. Each next event is drawn at random; after each step all invariants are checked.
 */
#ifndef PGUSHER_TEST_SIM_WORLD_H
#define PGUSHER_TEST_SIM_WORLD_H

#include "support/simulation/sim_client.h"
#include "support/simulation/sim_server.h"

enum { SIM_CLIENTS = 12, SIM_CANCELERS = 6 };

/* Begins a run of so many workers: fake_start() with random settings for this pool mode. */
void sim_world_begin(uint64_t seed, const char *pool_mode, unsigned workers);

/* Number of cancel requests that have reached the server with their query; in all runs. */
extern unsigned long long sim_world_cancels;

/* Number of steps after which a server was asked, and pinned; in all runs. */
extern unsigned long long sim_world_asked, sim_world_pinned;

/* Runs so many steps. */
void sim_world_run(unsigned steps);

/*
 * Ends the run without further failures: transactions end first, and then the pools must be
 * idle; then the clients disconnect. A client or server that does not get there hangs, and
 * fails the test.
 */
void sim_world_settle(void);

/* Frees everything; also after a failure. */
void sim_world_end(void);

/* Prints the state of all pools; after a failure. */
void sim_world_print(void);

/* The client in this slot of SIM_CLIENTS, the slot of a client, and the client with this number (or NULL). */
struct sim_client *sim_world_client_at(unsigned slot);
unsigned sim_world_slot(const struct sim_client *client);
struct sim_client *sim_world_client(unsigned number);

/* The client that a server is paired with, or is asked for; or NULL. */
struct sim_client *sim_world_client_of(const struct server_link *server);

/* The server fails, if it is connected: see sim_server_fail(). Its client may be closed for that. */
bool sim_world_fail_server(struct sim_server *server, bool tells, bool breaks);

/* Was a cancel request sent with the key of this client, or is the client closed? */
bool sim_world_is_cancelled(unsigned client);

/*
 * A cancel request arrives at this server. Fails the test unless it was sent for the paired
 * client, or the server is unpaired.
 */
void sim_world_check_cancel(const struct link *server);

#endif
