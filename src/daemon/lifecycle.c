/* SPDX-License-Identifier: ISC */
#include "daemon/lifecycle.h"

#include <sys/resource.h>

#include "admin/console/console.h"
#include "base/log.h"
#include "config/tcp_settings.h"
#include "daemon/apply.h"
#include "daemon/handover.h"
#include "daemon/reload.h"
#include "daemon/takeover.h"
#include "daemon/version.h"
#include "net/tls_context.h"
#include "session/auth/external_auth.h"
#include "session/link/tls_setup.h"
#include "session/login/client_greeting.h"
#include "session/rules/life.h"
#include "session/server/failover.h"
#include "session/work/control.h"
#include "session/work/suspend.h"

enum {
	/* A derivation takes milliseconds of a processor; the loop wants one too. */
	DERIVATION_THREADS = 2,
	/* Logins wait for theirs: this many may come at once after a restart. */
	DERIVATIONS_MOST = 16384,
	/* Nearly always these are answered from a file; a directory may have one thread hang. */
	SYSTEM_USER_THREADS = 2,
	SYSTEM_USERS_MOST = 16384,
	/* Names come from the configuration, so this is not for peers to fill. */
	RESOLVER_NAMES = 4096,
	/* Descriptors beyond those of links: the log, listening sockets, the loop's own. */
	OTHER_DESCRIPTORS = 10,
};

/* --- what the console may ask of us ------------------------------------------------------- */

static bool on_reload(struct registry *registry)
{
	return reload_run(daemon_of(registry));
}

static bool on_set(
	struct registry *registry, const char *key, const char *value, char *why, size_t size)
{
	return reload_set(daemon_of(registry), key, value, why, size);
}

static void on_shutdown(struct registry *registry, enum shutdown_mode mode, bool now)
{
	/* Nor would the process that takes over know that it is to end. */
	handover_give_up(daemon_of(registry));
	if (now)
		lifecycle_stop(daemon_of(registry));
	else
		lifecycle_shut_down(daemon_of(registry), mode);
}

static const char *on_hand_over(struct registry *registry, struct client_link *console)
{
	return handover_begin(daemon_of(registry), console);
}

static const char *on_commit(struct registry *registry, struct client_link *console)
{
	return handover_commit(daemon_of(registry), console);
}

/* A suspension begins or ends. */
static void on_accept(struct registry *registry, bool accept)
{
	if (accept)
		listeners_resume(&daemon_of(registry)->listeners);
	else
		listeners_pause(&daemon_of(registry)->listeners);
}

/* --- start -------------------------------------------------------------------------------- */

static bool refuse(const char *why)
{
	log_write(LEVEL_FATAL, "%s", why);
	return false;
}

static bool make_loop(struct daemon *daemon)
{
	daemon->has_loop = loop_init(&daemon->loop, &daemon->process.clock);
	/* From here on a signal is neither lost nor deadly. */
	if (!daemon->has_loop || !signals_start(daemon))
		return refuse("cannot make the event loop");
	return true;
}

static bool make_registry(struct daemon *daemon, struct snapshot *config)
{
	struct registry *registry = &daemon->registry;
	struct process *process = &daemon->process;

	daemon->actions =
		(struct actions){on_reload, on_set, on_shutdown, on_hand_over, on_commit};
	process->suspend = (struct suspend_hooks){on_accept, console_tick};
	process->actions = &daemon->actions;
	process->console = console_hooks;
	process->version = version_text;
	process_init(process, &daemon->loop.random, config);
	life_attach(registry);
	daemon->has_registry = registry_init(registry, process, &daemon->loop);
	if (!daemon->has_registry)
		return refuse("no memory for the configuration");
	registry->derivations = helper_new(&daemon->loop, DERIVATION_THREADS, DERIVATIONS_MOST);
	if (!registry->derivations)
		return refuse("cannot make a helper for key derivations");
	registry->system_users =
		helper_new(&daemon->loop, SYSTEM_USER_THREADS, SYSTEM_USERS_MOST);
	return registry->system_users ? true : refuse("cannot make a helper for system users");
}

static bool make_resolver(struct daemon *daemon)
{
	const struct settings *settings = daemon->registry.process->settings;
	const struct resolver_options options = {
		.resolv_conf = settings->resolv_conf,
		.found_life = settings->dns_max_ttl,
		.failed_life = settings->dns_nxdomain_ttl,
		.zone_period = settings->dns_zone_check_period,
		.names_max = RESOLVER_NAMES,
	};
	char why[256];

	daemon->registry.resolver = resolver_new(&daemon->loop, &options, why, sizeof(why));
	if (!daemon->registry.resolver)
		return refuse(why);
	resolver_on_move(daemon->registry.resolver, failover_host_moved, &daemon->registry);
	return true;
}

/* What pools may come to hold if every user uses every database. */
static unsigned long long expected_servers(const struct registry *registry)
{
	const unsigned users = registry_count_users(registry);
	const struct database *database, *next;
	unsigned long long sum = 0;

	HASH_ITER (by_name, registry->databases, database, next) {
		const int size = database_pool_size(database, registry->process->settings);

		sum += (unsigned long long)size * (database->config->user ? 1 : users);
	}
	return sum;
}

static void note_descriptor_limit(struct registry *registry)
{
	struct rlimit limit = {0};

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	registry->process->descriptor_limit =
		limit.rlim_cur > INT32_MAX ? INT32_MAX : (int)limit.rlim_cur;
	log_write(LEVEL_LOG,
		"kernel file descriptor limit: %llu (hard: %llu); max_client_conn: %d, max expected "
		"fd use: %llu",
		(unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max,
		registry->process->settings->max_client_conn,
		(unsigned long long)registry->process->settings->max_client_conn +
			OTHER_DESCRIPTORS + expected_servers(registry));
}

static bool listen_all(struct daemon *daemon)
{
	const struct settings *settings = daemon->registry.process->settings;
	const int *passed = daemon->passed.clients;
	const unsigned passed_count = daemon->takeover
		? takeover_listeners(daemon->takeover, &passed)
		: daemon->passed.client_count;
	const struct listen_options options = {
		.addresses = settings->listen_addr,
		.port = settings->listen_port,
		.backlog = settings->listen_backlog,
		.reuseport = settings->so_reuseport,
		.defer_accept = settings->tcp_defer_accept,
		.tcp = tcp_settings_options(settings),
		.unix_dir = settings->unix_socket_dir,
		.unix_mode = (unsigned)settings->unix_socket_mode,
		.unix_group = settings->unix_socket_group,
		.passed = passed,
		.passed_count = passed_count,
		.inherited = daemon->takeover != NULL,
	};
	char why[512];

	daemon->is_listening = listeners_open(&daemon->listeners, &daemon->loop, &options,
		client_greeting_accept, &daemon->registry, why, sizeof(why));
	daemon->registry.process->listeners = &daemon->listeners;
	return daemon->is_listening ? true : refuse(why);
}

static bool serve_metrics(struct daemon *daemon)
{
	char why[512];

	metrics_init(&daemon->metrics, &daemon->registry, &daemon->listeners,
		daemon->passed.metrics);
	if (metrics_follow(&daemon->metrics, why, sizeof(why)))
		return true;
	log_write(LEVEL_FATAL, "cannot serve metrics: %s", why);
	return false;
}

/* What the end of a link may have made possible. */
static void after_upkeep(struct registry *registry)
{
	log_report_repeats();
	console_tick(registry);
	listeners_descriptor_freed(&daemon_of(registry)->listeners);
	metrics_upkeep(&daemon_of(registry)->metrics);
}

/*
 * Everything is made: from the commit on all of it is ours, and nothing that fails may end us.
 */
static bool finish_takeover(struct daemon *daemon)
{
	struct takeover *takeover = daemon->takeover;
	char why[512];

	if (!takeover_adopt(takeover, &daemon->registry))
		return refuse("cannot rebuild what the old process had");
	if (!takeover_commit(takeover, why, sizeof(why)))
		return refuse(why);
	daemon->takeover = NULL;
	takeover_wait(takeover, daemon->registry.process->settings->pidfile);
	takeover_resume(takeover);
	takeover_free(takeover);
	serve_metrics(daemon);
	return true;
}

bool lifecycle_start(
	struct daemon *daemon, const struct options *options, struct snapshot *config)
{
	daemon->options = options;
	if (!make_loop(daemon)) {
		snapshot_unref(config);
		return false;
	}
	if (!make_registry(daemon, config) || !make_resolver(daemon))
		return false;
	if (!tls_setup_start(&daemon->registry))
		return refuse("TLS setup failed");
	note_descriptor_limit(&daemon->registry);
	if (!listen_all(daemon))
		return false;
	systemd_watchdog_start(&daemon->loop);
	janitor_start(&daemon->janitor, &daemon->registry, after_upkeep);
	if (daemon->takeover)
		return finish_takeover(daemon);
	return serve_metrics(daemon);
}

/* --- life --------------------------------------------------------------------------------- */

bool lifecycle_run(struct daemon *daemon)
{
	log_write(LEVEL_LOG, "process up: %s, libevent %s (%s), adns: %s, tls: %s",
		version_text, event_get_version(), event_base_get_method(daemon->loop.base),
		version_of_adns(), version_of_tls());
	systemd_ready();
	loop_run(&daemon->loop);
	return !daemon->failed;
}

void lifecycle_shut_down(struct daemon *daemon, enum shutdown_mode mode)
{
	/* What is at rest would never come to its end. */
	if (daemon->registry.process->operation == OPERATION_SUSPENDED)
		control_resume(&daemon->registry, NULL);
	daemon->registry.process->shutdown = mode;
	daemon->registry.process->shutdown_at = loop_now(&daemon->loop);
	listeners_close_tcp(&daemon->listeners);
	if (mode == SHUTDOWN_WAIT_FOR_SERVERS)
		control_pause(&daemon->registry, NULL);
	janitor_shut_down(&daemon->janitor);
}

void lifecycle_stop(struct daemon *daemon)
{
	loop_stop(&daemon->loop);
}

void lifecycle_fail(struct daemon *daemon, const char *why)
{
	log_write(LEVEL_FATAL, "%s", why);
	daemon->failed = true;
	loop_stop(&daemon->loop);
}

/* --- end ---------------------------------------------------------------------------------- */

/*
 * Does another process have our connections, or have we those of another one? Then neither a word
 * to them, nor a hand on the socket's file.
 */
static bool has_foreign_links(const struct daemon *daemon)
{
	return daemon->registry.process->operation == OPERATION_SUSPENDED || daemon->takeover;
}

static void end_registry(struct daemon *daemon)
{
	struct registry *registry = &daemon->registry;

	/* Logins that wait for a helper end first: it hands back what belongs to them. */
	helper_free(registry->derivations);
	helper_free(registry->system_users);
	control_close_all(
		registry, has_foreign_links(daemon) ? REASON_DISKO_OVER : REASON_PROCESS_ENDS);
	suspend_end(registry);
	daemon->is_left_at_work = external_auth_queue_free(registry->ldap) +
			external_auth_queue_free(registry->pam) >
		0;
	resolver_free(registry->resolver);
	tls_context_unref(registry->process->client_tls);
	tls_context_unref(registry->process->server_tls);
	loop_end_turn(&daemon->loop);
	registry_free(registry);
	process_free(&daemon->process);
}

void lifecycle_end(struct daemon *daemon)
{
	handover_end(daemon);
	if (daemon->is_listening) {
		systemd_watchdog_stop(&daemon->loop);
		janitor_stop(&daemon->janitor);
		listeners_close_all(&daemon->listeners, !has_foreign_links(daemon));
	}
	if (daemon->has_registry) {
		metrics_close(&daemon->metrics);
		end_registry(daemon);
	}
	if (daemon->has_loop) {
		signals_end(daemon);
		loop_free(&daemon->loop);
	}
	takeover_free(daemon->takeover);
	pidfile_remove(&daemon->pidfile);
}
