/* SPDX-License-Identifier: ISC */
/* Checks what a simulated client receives: see sim_client. */
#ifndef PGUSHER_TEST_SIM_ORACLE_H
#define PGUSHER_TEST_SIM_ORACLE_H

#include "support/simulation/sim_client.h"

/*
 * Checks the first message of the received bytes. Returns its size, or 0 when it is incomplete.
 * A wrong message fails the test.
 */
size_t sim_oracle_check(struct sim_client *client, const uint8_t *data, size_t available);

/*
 * Number of queries that ended with an error of the pooler because the queue was full, and because
 * they had waited for too long; of warnings that a server could not stay with its client; in all
 * runs.
 */
extern unsigned long long sim_oracle_refusals, sim_oracle_timeouts, sim_oracle_warnings;

/* Do pools share a limit of servers? */
bool sim_oracle_has_limits(void);

/* Checks the beginning of a message that will not be completed. */
void sim_oracle_check_tail(struct sim_client *client, const uint8_t *data, size_t length);

/*
 * Checks a closed client: there was a cause to close it, and it received the error of that
 * cause.
 */
void sim_oracle_check_close(const struct sim_client *client);

#endif
