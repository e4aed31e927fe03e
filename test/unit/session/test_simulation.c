/* SPDX-License-Identifier: ISC */
/*
 * Whole runs of clients, servers and cancel requests in an order drawn from a seed. All
 * invariants are checked after every step: see test/unit/support/simulation/sim_world.h.
 *
 * A failure prints its seed; SEED=n repeats that run. PGUSHER_SIMULATION_SECONDS sets the time
 * for each mode, FROM the first seed (default 1).
 */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "session/relay/pair.h"
#include "support/simulation/sim_moves.h"
#include "support/simulation/sim_notes.h"
#include "support/simulation/sim_oracle.h"
#include "support/simulation/sim_trace.h"
#include "support/simulation/sim_workers.h"
#include "support/simulation/sim_world.h"

enum {
	STEPS = 1500,
	/*
	 * Runs of each mode, unless PGUSHER_SIMULATION_SECONDS asks for more: the same seeds on
	 * every machine that has the time for them. A slow machine ends after SECONDS, but never
	 * before RUNS_AT_LEAST.
	 */
	RUNS = 100,
	RUNS_AT_LEAST = 5,
	SECONDS = 2,
};

static const char *const modes[] = {"session", "transaction", "statement"};

/* --- replacements of system calls --------------------------------------------------------- */

int __wrap_event_base_loop(struct event_base *base, int flags);
int __wrap_timerfd_settime(int fd, int flags, const void *wait, void *before);

/* The simulation produces all events itself. */
int __wrap_event_base_loop(struct event_base *base, int flags)
{
	(void)base;
	(void)flags;
	return 0;
}

int __wrap_timerfd_settime(int fd, int flags, const void *wait, void *before)
{
	(void)fd;
	(void)flags;
	(void)wait;
	(void)before;
	return 0;
}

/* A change of these functions must be a change here too. */
__typeof__(pair_join) __real_pair_join, __wrap_pair_join;
__typeof__(host_use) __real_host_use, __wrap_host_use;
__typeof__(host_answered) __real_host_answered, __wrap_host_answered;

/* At this moment, by what is known of the host at this moment. */
void __wrap_pair_join(struct client_link *client, struct server_link *server)
{
	sim_moves_check_pair(client, server);
	sim_workers_check_pair(client, server);
	__real_pair_join(client, server);
}

void __wrap_host_use(struct server_link *server, struct host *host)
{
	sim_moves_check_use(server, host);
	__real_host_use(server, host);
}

void __wrap_host_answered(struct host *host, usec_t took)
{
	sim_moves_host_answers(host);
	__real_host_answered(host, took);
}

/* --- runs --------------------------------------------------------------------------------- */

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void run(uint64_t seed)
{
	sim_world_begin(seed, modes[seed % COUNT(modes)], (unsigned)number_from("WORKERS", 1));
	sim_world_run(STEPS);
	sim_world_settle();
	sim_world_end();
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void run_mode(uint64_t mode)
{
	const uint64_t wanted = number_from("PGUSHER_SIMULATION_SECONDS", 0);
	const double until = seconds() + (double)(wanted ? wanted : SECONDS);
	const uint64_t only = number_from("SEED", 0), most = wanted ? UINT64_MAX : RUNS;
	uint64_t seed = number_from("FROM", 1), runs = 0, steps = 0;

	if (only != 0) {
		if (only % COUNT(modes) != mode)
			skip();
		run(only);
		return;
	}
	while (seed % COUNT(modes) != mode)
		seed++;
	for (; runs < most && (runs < RUNS_AT_LEAST || seconds() < until);
		seed += COUNT(modes), runs++) {
		run(seed);
		steps += sim_trace_steps();
	}
	print_message(
		"# %s: %llu runs, %llu steps, %llu refused, %llu timed out, %llu asked, "
		"%llu pinned, %llu warned, %llu notified, %llu executed, %llu moves, %llu pairs\n",
		modes[mode], (unsigned long long)runs, (unsigned long long)steps,
		sim_oracle_refusals, sim_oracle_timeouts, sim_world_asked, sim_world_pinned,
		sim_oracle_warnings, sim_notes_count, sim_postgres_executed, sim_moves_count,
		sim_moves_pairs);
	assert_true(runs >= RUNS_AT_LEAST);
	assert_true(steps >= runs * STEPS);
	assert_true(runs < RUNS || (sim_oracle_refusals > 0 && sim_oracle_timeouts > 0));
	assert_true(runs < RUNS || (sim_moves_count > 0 && sim_moves_pairs > 0));
	assert_true(runs < RUNS || (sim_notes_count > 0 && sim_postgres_executed > 0));
	assert_true(mode == 0 || runs < RUNS ||
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
		run(seed + 1);
		digests[seed] = sim_trace_digest();
	}
	for (uint64_t seed = SEEDS; seed-- > 0;) {
		run(seed + 1);
		if (sim_trace_digest() != digests[seed])
			fail_msg("another run with SEED=%u", (unsigned)seed + 1);
	}
}

static int end(void **state)
{
	(void)state;
	if (sim_trace_print())
		sim_world_print();
	sim_world_end();
	return 0;
}

/* A CHECK() has aborted the process. */
static void on_abort(int number)
{
	sim_trace_print();
	sim_world_print();
	signal(number, SIG_DFL);
	raise(number);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_random_orders_of_events_in_session_mode, end),
		cmocka_unit_test_teardown(
			test_random_orders_of_events_in_transaction_mode, end),
		cmocka_unit_test_teardown(test_random_orders_of_events_in_statement_mode, end),
		cmocka_unit_test_teardown(test_a_seed_repeats_its_run, end),
	};

	signal(SIGABRT, on_abort);
	signal(SIGSEGV, on_abort);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
