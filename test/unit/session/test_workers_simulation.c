/* SPDX-License-Identifier: ISC */
/*
 * Whole runs with several workers in one thread: which loop runs next, and so when its mail arrives, is
 * drawn from the seed too. What must hold is in test/unit/support/simulation/sim_workers.h, the
 * variables of the environment in sim_runs.h.
 */
#include "support/fakes/fake_pool.h"
#include "support/simulation/sim_oracle.h"
#include "support/simulation/sim_runs.h"
#include "support/simulation/sim_trace.h"
#include "support/simulation/sim_workers.h"
#include "support/simulation/sim_world.h"

/* Many short runs: most of what goes wrong between workers does so in logins. */
enum { STEPS = 250 };

static const unsigned workers[] = {1, 2, 4};

static unsigned workers_of(uint64_t seed)
{
	return workers[seed / SIM_MODES % COUNT(workers)];
}

static bool has_workers(const struct sim_plan *plan, uint64_t seed)
{
	return workers_of(seed) == plan->number;
}

static void run_workers(unsigned number)
{
	char name[16];
	const struct sim_plan plan = {
		.name = name,
		.includes = has_workers,
		.number = number,
		.runs = 680,
		.at_least = 50,
		.seconds = 6,
	};
	const unsigned long long mails = sim_workers_mails, cancels = sim_world_cancels;

	snprintf(name, sizeof(name), "%u workers", number);
	if (!sim_runs(&plan))
		return;
	assert_true(sim_world_cancels > cancels);
	assert_true((sim_workers_mails > mails) == (number > 1));
}

static void test_random_orders_of_events_with_one_worker(void **state)
{
	(void)state;
	run_workers(1);
}

static void test_random_orders_of_events_with_two_workers(void **state)
{
	(void)state;
	run_workers(2);
}

static void test_random_orders_of_events_with_four_workers(void **state)
{
	(void)state;
	run_workers(4);
}

/* Of all numbers of workers and all modes, whatever ran before. */
static void test_a_seed_repeats_its_run(void **state)
{
	enum { SEEDS = SIM_MODES * COUNT(workers) };
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
		TEST(test_random_orders_of_events_with_one_worker),
		TEST(test_random_orders_of_events_with_two_workers),
		TEST(test_random_orders_of_events_with_four_workers),
		TEST(test_a_seed_repeats_its_run),
	};

	sim_runs_steps = STEPS;
	sim_runs_workers = workers_of;
	sim_runs_watch_aborts();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
