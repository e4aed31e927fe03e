/* SPDX-License-Identifier: ISC */
#include "daemon/workers.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/apply.h"
#include "net/resolver.h"
#include "session/auth/external_auth.h"
#include "session/link/derivation.h"
#include "session/rules/life.h"
#include "session/rules/watching.h"
#include "session/server/failover.h"

enum {
	/* A derivation takes milliseconds of CPU time; the loop needs a CPU too. */
	DERIVATION_THREADS = 2,
	/*
	 * Logins wait for their derivation: after a restart a quarter of this number may arrive
	 * at once from one address, or of one user.
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
	if (!watching_follow(registry))
		return refuse("no memory for the log of slow queries");
	if (!derivations_start(registry, DERIVATION_THREADS, DERIVATIONS_MOST))
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
}

bool workers_start(struct daemon *daemon)
{
	struct process *process = &daemon->process;

	if (process->workers < 2)
		return true;
	share(process);
	for (unsigned i = 1; i < process->workers; i++)
		janitor_start(&daemon->others[i - 1].janitor, process->registries[i], NULL);
	return crew_start(&process->crew) || refuse(strerror(errno));
}

void workers_stop(struct daemon *daemon)
{
	if (daemon->process.crew.count > 0) /* else the start has failed before */
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
