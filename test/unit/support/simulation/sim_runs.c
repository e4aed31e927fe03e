/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_runs.h"

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

const char *const sim_modes[SIM_MODES] = {"session", "transaction", "statement"};
unsigned sim_runs_steps;
unsigned (*sim_runs_workers)(uint64_t seed);

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

void sim_run(uint64_t seed)
{
	sim_world_begin(seed, sim_modes[seed % SIM_MODES], sim_runs_workers(seed));
	sim_world_run(sim_runs_steps);
	sim_world_settle();
	sim_world_end();
}

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Returns the number of runs. */
static uint64_t run_all(const struct sim_plan *plan, uint64_t *steps)
{
	const uint64_t wanted = number_from("PGUSHER_SIMULATION_SECONDS", 0);
	const double until = seconds() + (double)(wanted ? wanted : plan->seconds);
	const uint64_t most = wanted ? UINT64_MAX : plan->runs;
	uint64_t seed = number_from("FROM", 1), runs = 0;

	for (; runs < most && (runs < plan->at_least || seconds() < until); seed++) {
		if (!plan->includes(plan, seed))
			continue;
		sim_run(seed);
		*steps += sim_trace_steps();
		runs++;
	}
	return runs;
}

bool sim_runs(const struct sim_plan *plan)
{
	const uint64_t only = number_from("SEED", 0);
	uint64_t runs, steps = 0;

	if (only != 0) {
		if (!plan->includes(plan, only))
			skip();
		sim_run(only);
		return false;
	}
	runs = run_all(plan, &steps);
	print_message("# %s: %llu runs, %llu steps, %llu refused, %llu timed out, %llu asked, "
		      "%llu pinned, %llu warned, %llu notified, %llu executed, %llu moves, "
		      "%llu pairs, %llu mails, %llu cancelled\n",
		plan->name, (unsigned long long)runs, (unsigned long long)steps,
		sim_oracle_refusals, sim_oracle_timeouts, sim_world_asked, sim_world_pinned,
		sim_oracle_warnings, sim_notes_count, sim_postgres_executed, sim_moves_count,
		sim_moves_pairs, sim_workers_mails, sim_world_cancels);
	assert_true(runs >= plan->at_least);
	assert_true(steps >= runs * sim_runs_steps);
	return runs >= plan->runs;
}

int sim_runs_end(void **state)
{
	(void)state;
	if (sim_trace_print())
		sim_world_print();
	sim_world_end();
	return 0;
}

static void on_abort(int number)
{
	sim_trace_print();
	sim_world_print();
	signal(number, SIG_DFL);
	raise(number);
}

void sim_runs_watch_aborts(void)
{
	signal(SIGABRT, on_abort);
	signal(SIGSEGV, on_abort);
}
