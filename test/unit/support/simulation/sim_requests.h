/* SPDX-License-Identifier: ISC */
/*
 * Messages of simulated clients, with tokens, written both for the pooler and for the oracle.
 */
#ifndef PGUSHER_TEST_SIM_REQUESTS_H
#define PGUSHER_TEST_SIM_REQUESTS_H

#include "support/simulation/sim_client.h"

/* Sends one random batch, or a part of one. */
void sim_requests_draw(struct sim_client *client, const struct sim_profile *profile);

/* Sends more data of a COPY, or its end. */
void sim_requests_copy(struct sim_client *client, bool ends);

void sim_requests_sync(struct sim_client *client);
void sim_requests_query(struct sim_client *client, const char *sql);
void sim_requests_terminate(struct sim_client *client);

#endif
