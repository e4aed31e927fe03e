/* SPDX-License-Identifier: ISC */
#include "daemon/workers.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/log.h"
#include "daemon/apply.h"
#include "net/resolver.h"
#include "session/auth/external_auth.h"
#include "session/link/derivation.h"
#include "session/rules/life.h"
#include "session/rules/watching.h"
#include "session/server/failover.h"

enum {
	/*
	 * A derivation takes milliseconds of CPU time; the loop needs a CPU too. Of several
	 * workers each has one thread, so that there are no more of them than loops.
	 */
	DERIVATION_THREADS = 2,
	DERIVATION_THREADS_OF_EACH = 1,
	/*
	 * Logins wait for their derivation: after a restart a quarter of this number may arrive
	 * at once from one address, or of one user. Each worker has this limit for itself: there
	 * are never more derivations than logins, which max_client_conn limits in all.
	 */
	DERIVATIONS_MOST = 65536,
	/* Nearly always a look-up reads a file; a directory service may block one thread. */
	SYSTEM_USER_THREADS = 2,
	SYSTEM_USERS_MOST = 16384,
	/* Names come from the configuration, so clients cannot fill the cache. */
	RESOLVER_NAMES = 4096,
};

static bool refuse(const char *why)
{
	log_write(LEVEL_FATAL, "%s", why);
	return false;
}

/* --- parts -------------------------------------------------------------------------------- */

static bool make_resolver(struct registry *registry)
{
	const struct settings *settings = registry->process->settings;
	const struct resolver_options options = {
		.resolv_conf = settings->resolv_conf,
		.found_life = settings->dns_max_ttl,
		.failed_life = settings->dns_nxdomain_ttl,
		.zone_period = settings->dns_zone_check_period,
		.names_max = RESOLVER_NAMES,
	};
	char why[256];

	registry->resolver = resolver_new(registry->loop, &options, why, sizeof(why));
	if (!registry->resolver)
		return refuse(why);
	resolver_on_move(registry->resolver, failover_host_moved, registry);
	return true;
}

bool workers_make_parts(struct registry *registry)
{
	const unsigned derivation_threads = registry->process->workers_wanted > 1
		? DERIVATION_THREADS_OF_EACH
		: DERIVATION_THREADS;

	if (!watching_follow(registry))
		return refuse("no memory for the log of slow queries");
	if (!derivations_start(registry, derivation_threads, DERIVATIONS_MOST))
		return refuse("cannot make a helper for key derivations");
	registry->system_users =
		helper_new(registry->loop, SYSTEM_USER_THREADS, SYSTEM_USERS_MOST);
	if (!registry->system_users)
		return refuse("cannot make a helper for system users");
	return make_resolver(registry);
}

unsigned workers_end_parts(struct registry *registry)
{
	const unsigned left = derivations_end(registry) + helper_leave(registry->system_users) +
		external_auth_queue_free(registry->ldap) +
		external_auth_queue_free(registry->pam);

	resolver_free(registry->resolver);
	return left;
}

/* --- the other workers -------------------------------------------------------------------- */

bool workers_may_be_bound(const struct settings *settings)
{
	struct core_list list;
	char why[96];
	int missing;

	if (!core_list_read(settings->cpu_affinity, &list))
		return refuse("cpu_affinity is malformed");
	missing = core_list_missing(&list);
	if (missing < 0)
		return true;
	snprintf(why, sizeof(why), "cpu_affinity: this process may use no processor %d",
		missing);
	return refuse(why);
}

bool workers_make_loops(struct daemon *daemon, unsigned count)
{
	struct process *process = &daemon->process;
	struct loop *loops[WORKERS_MOST] = {&daemon->loop};

	process->workers_wanted = count;
	if (count > 1) {
		daemon->others = calloc(count - 1, sizeof(*daemon->others));
		if (!daemon->others)
			return refuse("no memory for workers");
		/* Each worker allocates, and should not wait for another one. */
		mallopt(M_ARENA_MAX, (int)count);
	}
	for (unsigned i = 1; i < count; i++) {
		struct worker *worker = &daemon->others[i - 1];

		if (!loop_init(&worker->loop, &process->clock))
			return refuse("cannot make the event loop");
		worker->has_loop = true;
		loops[i] = &worker->loop;
	}
	return crew_init(&process->crew, loops, count) || refuse("cannot make the event loop");
}

bool workers_make_registries(struct daemon *daemon)
{
	for (unsigned i = 1; i < daemon->process.workers_wanted; i++) {
		struct worker *worker = &daemon->others[i - 1];

		life_attach(&worker->registry);
		if (!registry_init(&worker->registry, &daemon->process, &worker->loop))
			return refuse("no memory for the configuration");
		if (!workers_make_parts(&worker->registry))
			return false;
	}
	return true;
}

static void share(struct process *process)
{
	lock_share(&process->directory.lock);
	lock_share(&process->tallies.lock);
	lock_share(&process->cancel_keys.lock);
	lock_share(&process->sources.lock);
	lock_share(&process->own_connections.lock);
	lock_share(&process->server_tls_lock);
	lock_share(&process->slow.lock);
}

/* Worker i to the i-th processor of the list, from its beginning again if that is shorter. */
static void bind_workers(struct process *process, const struct core_list *list)
{
	char numbers[WORKERS_MOST * sizeof(" 1023")] = "";
	size_t length = 0;

	for (unsigned i = 0; i < process->workers; i++) {
		const int core = list->cores[i % list->count];

		if (!crew_pin(&process->crew, i, core))
			log_write(LEVEL_ERROR,
				"cpu_affinity: worker %u cannot be bound to processor %d: %m",
				i, core);
		length += (size_t)snprintf(
			numbers + length, sizeof(numbers) - length, " %d", core);
	}
	log_write(LEVEL_LOG, "cpu_affinity: %u worker%s, on processor%s%s", process->workers,
		process->workers == 1 ? "" : "s", process->workers == 1 ? "" : "s", numbers);
}

bool workers_start(struct daemon *daemon)
{
	struct process *process = &daemon->process;
	struct core_list list;

	if (process->workers > 1)
		share(process);
	for (unsigned i = 1; i < process->workers; i++)
		janitor_start(&daemon->others[i - 1].janitor, process->registries[i], NULL);
	if (!core_list_read(process->settings->cpu_affinity, &list))
		list.count = 0;
	if (list.count > 0)
		cores_keep();
	if (!crew_start(&process->crew))
		return refuse(strerror(errno));
	if (list.count > 0)
		bind_workers(process, &list);
	return true;
}

void workers_stop(struct daemon *daemon)
{
	/* The process may have failed to start before there was a crew. */
	if (!daemon->process.crew.members)
		return;
	crew_stop(&daemon->process.crew);
	for (unsigned i = 1; i < daemon->process.workers; i++) {
		if (daemon->others[i - 1].janitor.registry)
			janitor_stop(&daemon->others[i - 1].janitor);
	}
}

void workers_free_registries(struct daemon *daemon)
{
	for (unsigned i = daemon->process.workers; i > 1; i--)
		registry_free(&daemon->others[i - 2].registry);
}

void workers_free_loops(struct daemon *daemon)
{
	const unsigned count = daemon->others ? daemon->process.workers_wanted : 1;

	if (daemon->process.crew.count > 0)
		crew_free(&daemon->process.crew);
	for (unsigned i = 1; i < count; i++) {
		if (daemon->others[i - 1].has_loop)
			loop_free(&daemon->others[i - 1].loop);
	}
	free(daemon->others);
	daemon->others = NULL;
}
