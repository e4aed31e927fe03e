/* SPDX-License-Identifier: ISC */
/* The last steps of a simulation, printed after a failure. */
#ifndef PGUSHER_TEST_SIM_TRACE_H
#define PGUSHER_TEST_SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts the trace of a run with this seed. */
void sim_trace_begin(uint64_t seed, const char *settings);

/*
 * Adds a step: `client 3: sends 12 "text"`. `actor` and `action` are not copied; the text,
 * which may be NULL, is copied as far as there is room.
 */
void sim_trace(const char *endpoint, unsigned number, const char *action, long amount,
	const char *text);

/* The same for a message: its type byte, and the printable part of its body. */
void sim_trace_message(const char *endpoint, unsigned number, const char *action,
	const uint8_t *message, size_t total);

/* The run has succeeded. */
void sim_trace_end(void);

/*
 * Prints seed, settings and steps of a run that has not ended. Returns false when there is
 * none.
 */
bool sim_trace_print(void);

/* The number of steps since sim_trace_begin(). */
uint64_t sim_trace_steps(void);

/* A digest of these steps: two runs with one seed have the same. */
uint64_t sim_trace_digest(void);

#endif
