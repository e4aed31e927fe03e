/* SPDX-License-Identifier: ISC */
/*
 * The simulated world around one registry: clients, servers, askers of cancel requests, an
 * operator, and time. What happens next is drawn; after each step all that must hold is looked at.
 */
#ifndef PGUSHER_TEST_SIM_WORLD_H
#define PGUSHER_TEST_SIM_WORLD_H

#include "support/simulation/sim_client.h"
#include "support/simulation/sim_server.h"

enum { SIM_CLIENTS = 12, SIM_ASKERS = 6 };

/* Begin a run: fake_start() with settings drawn for this pool mode. */
void sim_world_begin(uint64_t seed, const char *pool_mode);

/* So many steps. */
void sim_world_run(unsigned steps);

/*
 * Nothing bad happens any more and everybody comes to an end: transactions first, and then the
 * pools must have come to rest; then the clients leave. Who does not get there hangs.
 */
void sim_world_settle(void);

/* Let everything go; also after a failure. */
void sim_world_end(void);

/* Print what the pools have; after a failure. */
void sim_world_print(void);

/* Has somebody shown the key of this client, or is the client gone? */
bool sim_world_is_aimed_at(unsigned client);

/* A cancel request reaches this server: is it for its client, or is nobody hit by it? */
void sim_world_check_cancel(const struct link *server);

#endif
