/* SPDX-License-Identifier: ISC */
/* Judges what a simulated client hears: see sim_client. */
#ifndef PGUSHER_TEST_SIM_ORACLE_H
#define PGUSHER_TEST_SIM_ORACLE_H

#include "support/simulation/sim_client.h"

/* The message at the front, which must be right; returns its size, 0: it is not whole yet. */
size_t sim_oracle_judge(struct sim_client *client, const uint8_t *data, size_t available);

/* The beginning of a message whose end will not come. */
void sim_oracle_judge_tail(struct sim_client *client, const uint8_t *data, size_t length);

/* It was closed: was there a reason, and was it told the right one? */
void sim_oracle_judge_end(const struct sim_client *client);

#endif
