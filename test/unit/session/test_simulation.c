/* SPDX-License-Identifier: ISC */
/*
 * Whole runs of clients, servers and cancel requests in an order drawn from a seed, for each pool
 * mode. All invariants are checked after every step: see test/unit/support/simulation/sim_world.h,
 * and sim_runs.h for the variables of the environment.
 */
#include "support/fakes/fake_pool.h"
#include "support/postgres/sim_postgres.h"
#include "support/simulation/sim_moves.h"
#include "support/simulation/sim_notes.h"
#include "support/simulation/sim_oracle.h"
#include "support/simulation/sim_runs.h"
#include "support/simulation/sim_trace.h"
#include "support/simulation/sim_world.h"

enum { STEPS = 1500 };

static bool is_of_mode(const struct sim_plan *plan, uint64_t seed)
{
	return seed % SIM_MODES == plan->number;
}

static unsigned one_worker(uint64_t seed)
{
	(void)seed;
	return 1;
}

static void run_mode(unsigned mode)
{
	const struct sim_plan plan = {
		.name = sim_modes[mode],
		.includes = is_of_mode,
		.number = mode,
		.runs = 100,
		.at_least = 5,
		.seconds = 2,
	};

	if (!sim_runs(&plan))
		return;
	assert_true(sim_oracle_refusals > 0 && sim_oracle_timeouts > 0);
	assert_true(sim_moves_count > 0 && sim_moves_pairs > 0);
	assert_true(sim_notes_count > 0 && sim_postgres_executed > 0);
	assert_true(mode == 0 ||
		(sim_world_asked > 0 && sim_world_pinned > 0 && sim_oracle_warnings > 0));
}

static void test_random_orders_of_events_in_session_mode(void **state)
{
	(void)state;
	run_mode(0);
}

static void test_random_orders_of_events_in_transaction_mode(void **state)
{
	(void)state;
	run_mode(1);
}

static void test_random_orders_of_events_in_statement_mode(void **state)
{
	(void)state;
	run_mode(2);
}

/* Whatever ran before it: a failure can be repeated by its seed alone. */
static void test_a_seed_repeats_its_run(void **state)
{
	enum { SEEDS = 12 };
	uint64_t digests[SEEDS];

	(void)state;
	if (getenv("SEED"))
		skip();
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		sim_run(seed + 1);
		digests[seed] = sim_trace_digest();
	}
	for (uint64_t seed = SEEDS; seed-- > 0;) {
		sim_run(seed + 1);
		if (sim_trace_digest() != digests[seed])
			fail_msg("another run with SEED=%u", (unsigned)seed + 1);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, sim_runs_end)
	const struct CMUnitTest tests[] = {
		TEST(test_random_orders_of_events_in_session_mode),
		TEST(test_random_orders_of_events_in_transaction_mode),
		TEST(test_random_orders_of_events_in_statement_mode),
		TEST(test_a_seed_repeats_its_run),
	};

	sim_runs_steps = STEPS;
	sim_runs_workers = one_worker;
	sim_runs_watch_aborts();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
