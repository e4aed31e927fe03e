/* SPDX-License-Identifier: ISC */
/*
 * Runs of the simulation by their seeds. A failure prints its seed; SEED=n repeats that run.
 * PGUSHER_SIMULATION_SECONDS sets the time for each test, FROM the first seed (default 1).
 *
 * A program that uses this file is linked with the calls wrapped that test/Makefile.inc lists.
 */
#ifndef PGUSHER_TEST_SIM_RUNS_H
#define PGUSHER_TEST_SIM_RUNS_H

#include <stdbool.h>
#include <stdint.h>

/* The runs of one test. */
struct sim_plan {
	const char *name; /* for the line that it prints */
	bool (*includes)(const struct sim_plan *plan, uint64_t seed);
	unsigned number; /* for includes() */
	/*
	 * So many runs, unless PGUSHER_SIMULATION_SECONDS asks for more: the same seeds on every machine
	 * that has the time for them. A slow machine ends after `seconds`, but never before `at_least`.
	 */
	unsigned runs, at_least, seconds;
};

enum { SIM_MODES = 3 };
extern const char *const sim_modes[SIM_MODES];

/* Set by the program: the length of a run, and its number of workers. */
extern unsigned sim_runs_steps;
extern unsigned (*sim_runs_workers)(uint64_t seed);

/* One run, from begin to end. */
void sim_run(uint64_t seed);

/* Returns whether all runs of the plan were made. Skips the test if SEED is none of its runs. */
bool sim_runs(const struct sim_plan *plan);

/* For cmocka's tear-down: prints the run that has failed. */
int sim_runs_end(void **state);

/* Print it too when a CHECK() aborts the process. */
void sim_runs_watch_aborts(void);

#endif
