/* SPDX-License-Identifier: ISC */
/* The last steps of a simulation, to be told when one has failed. */
#ifndef PGUSHER_TEST_SIM_TRACE_H
#define PGUSHER_TEST_SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Start anew, for the run with this seed. */
void sim_trace_begin(uint64_t seed, const char *settings);

/*
 * One more step: `client 3: says 12 "text"`. `who` and `what` are kept as they are, the text,
 * which may be NULL, is copied as far as there is room.
 */
void sim_trace(
	const char *who, unsigned number, const char *what, long amount, const char *text);

/* The same of a message: its letter and whatever of it is text. */
void sim_trace_message(const char *who, unsigned number, const char *what,
	const uint8_t *message, size_t total);

/* The run has ended well. */
void sim_trace_end(void);

/* Print seed, settings and steps, if a run has begun and not ended: else false. */
bool sim_trace_print(void);

/* How many steps there were since the last begin. */
uint64_t sim_trace_steps(void);

#endif
