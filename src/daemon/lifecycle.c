/* SPDX-License-Identifier: ISC */
#include "daemon/lifecycle.h"

#include <unistd.h>

#include "admin/console/console.h"
#include "base/log.h"
#include "config/tcp_settings.h"
#include "daemon/apply.h"
#include "daemon/console_actions.h"
#include "daemon/descriptor_limit.h"
#include "daemon/reload.h"
#include "daemon/service_reload.h"
#include "daemon/takeover/handover.h"
#include "daemon/takeover/takeover.h"
#include "daemon/version.h"
#include "daemon/workers.h"
#include "net/address.h"
#include "net/tls_context.h"
#include "session/link/tls_setup.h"
#include "session/login/client_accept.h"
#include "session/pool/peer_discovery.h"
#include "session/rules/life.h"
#include "session/rules/watching.h"
#include "session/serving/control.h"
#include "session/serving/suspend.h"

/* A watchdog whose time is unknown gets messages twice in this time. */
#define WATCHDOG_DEFAULT (10 * USEC_PER_SEC)

/* --- start -------------------------------------------------------------------------------- */

static bool refuse(const char *why)
{
	log_write(LEVEL_FATAL, "%s", why);
	return false;
}

static bool make_loop(struct daemon *daemon)
{
	if (!loop_init(&daemon->loop, &daemon->process.clock))
		return refuse("cannot make the event loop");
	daemon->made = DAEMON_MADE_LOOP;
	/* From here on signals are kept for the loop, and do not kill the process. */
	return signals_start(daemon) || refuse("cannot make the event loop");
}

static bool make_registry(struct daemon *daemon, struct snapshot *config)
{
	struct registry *registry = &daemon->registry;
	struct process *process = &daemon->process;
	const struct settings *settings = snapshot_settings(config);

	process->watchdog = systemd_watchdog();
	process->version = version_text(settings->compat_version);
	process_init(process, &daemon->loop.random, config);
	if (!workers_make_loops(daemon, (unsigned)settings->workers))
		return false;
	life_attach(registry);
	console_actions_connect(daemon);
	if (!registry_init(registry, process, &daemon->loop))
		return refuse("no memory for the configuration");
	daemon->made = DAEMON_MADE_REGISTRY;
	return workers_make_parts(registry) && workers_make_registries(daemon) &&
		(peer_discovery_follow(registry) || refuse("no memory for peers"));
}

/*
 * Leave copies of the listening sockets with the service manager: should this process die, clients
 * wait in them for the next one. Those that the manager has passed it has already.
 */
static void keep_listeners(struct daemon *daemon)
{
	const struct listener *listener = NULL;
	int own[SYSTEMD_SOCKETS_MOST];
	unsigned count = 0;

	while ((listener = listeners_next(&daemon->listeners, listener)) != NULL) {
		if (!listener->is_passed && count < SYSTEMD_SOCKETS_MOST)
			own[count++] = listener->fd;
	}
	systemd_keep_sockets(own, count);
	systemd_close_kept(&daemon->passed);
}

/*
 * Without a password in --to all clients are let in: then the sockets of another process have to be
 * as local as those of --listen.
 */
static bool may_use(
	const struct daemon *daemon, const struct listen_socket *passed, unsigned count)
{
	const struct settings *settings = daemon->registry.process->settings;
	const bool all_come_in = daemon->options->to && settings->auth_type == AUTH_TYPE_ANY;

	for (unsigned i = 0; all_come_in && i < count; i++) {
		const struct address address = address_local(passed[i].fd);

		if (!address_is_local(&address))
			return refuse(
				"--to without a password: a socket that was passed is open "
				"to other machines");
	}
	return true;
}

static bool listen_all(struct daemon *daemon)
{
	const struct settings *settings = daemon->registry.process->settings;
	const struct listen_socket *passed = daemon->passed.clients;
	const unsigned passed_count = daemon->takeover
		? takeover_listeners(daemon->takeover, &passed, &daemon->passed.metrics)
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
		.kept = daemon->passed.kept,
		.kept_count = daemon->passed.kept_count,
	};
	char why[512];

	if (!may_use(daemon, passed, passed_count))
		return false;
	daemon->registry.process->listeners = &daemon->listeners;
	if (!listeners_open(&daemon->listeners, &daemon->loop, &options, client_accept,
		    &daemon->registry, why, sizeof(why)))
		return refuse(why);
	daemon->listeners.has_room = client_accept_has_room;
	daemon->made = DAEMON_MADE_LISTENERS;
	keep_listeners(daemon);
	return true;
}

static void make_metrics(struct daemon *daemon)
{
	const struct metrics_site site = page_site(&daemon->page);

	page_init(&daemon->page, &daemon->registry);
	metrics_init(&daemon->metrics, &daemon->registry, &daemon->listeners,
		daemon->passed.metrics, &site);
}

static bool serve_metrics(struct daemon *daemon)
{
	char why[512];

	if (metrics_follow(&daemon->metrics, why, sizeof(why)))
		return true;
	log_write(LEVEL_FATAL, "cannot serve metrics: %s", why);
	return false;
}

/* Work that depends on closed links: their descriptors and pools are free now. */
static void after_upkeep(struct registry *registry)
{
	log_report_repeats();
	console_tick(registry);
	progress_lines_work(&daemon_of(registry)->progress, registry);
	descriptor_limit_review(registry);
	listeners_descriptor_freed(&daemon_of(registry)->listeners);
	metrics_upkeep(&daemon_of(registry)->metrics);
}

/* May the files be read now, or would the other process of a takeover not learn of it? */
static bool may_reload(const struct daemon *daemon)
{
	const struct process *process = &daemon->process;

	return process->operation != OPERATION_SUSPENDED && !process->draining &&
		!process->still && !daemon->handed_over;
}

static void reload_changed(struct daemon *daemon, const char *path, size_t others)
{
	if (!may_reload(daemon))
		return;
	if (others > 0)
		log_write(LEVEL_LOG, "'%s' and %zu more have changed, re-reading config", path,
			others);
	else
		log_write(LEVEL_LOG, "'%s' has changed, re-reading config", path);
	systemd_reloading();
	reload_run(daemon, NULL, 0);
	systemd_ready();
}

static void on_files_changed(struct file_watch *watch, const char *path, size_t others)
{
	struct daemon *daemon =
		(struct daemon *)((char *)watch - offsetof(struct daemon, file_watch));

	process_stop_others(&daemon->process);
	reload_changed(daemon, path, others);
	process_let_others_run(&daemon->process);
}

static void watch_files(struct daemon *daemon)
{
	file_watch_init(&daemon->file_watch, &daemon->loop, on_files_changed);
	file_watch_turn(&daemon->file_watch, daemon->registry.process->settings->watch_config);
}

/*
 * Another service may listen on this Unix socket, if the options or the configuration of a reload
 * are not those of the start. Earlier versions do not tell which process they are.
 */
static bool is_from_main_process(const struct daemon *daemon)
{
	const pid_t expected = daemon->options->main_process;
	const pid_t found = daemon->process.old_process;

	return expected == 0 || found == 0 || found == expected;
}

/*
 * All parts are made. From the commit on the connections belong to this process, so later
 * errors must not end it.
 */
static bool finish_takeover(struct daemon *daemon)
{
	struct takeover *takeover = daemon->takeover;
	struct registry *each;
	char why[512];

	if (!takeover_adopt(takeover, &daemon->registry))
		return refuse("cannot rebuild what the old process had");
	EACH_REGISTRY (each, &daemon->process)
		watching_note_running(each);
	if (!is_from_main_process(daemon))
		return refuse(
			"the process at the Unix socket is not the one to take over from");
	/* Before the old process can end: the manager would take that for the service's end. */
	if (daemon->options->main_process > 0 && !systemd_main_process(getpid()))
		return refuse("cannot tell the service manager of the new process");
	if (!takeover_commit(takeover, why, sizeof(why))) {
		if (daemon->options->main_process > 0)
			systemd_main_process(daemon->options->main_process);
		return refuse(why);
	}
	daemon->takeover = NULL;
	takeover_resume(takeover, &daemon->registry);
	takeover_free(takeover);
	succession_begin(daemon);
	return true;
}

/*
 * The manager tells the time of its watchdog to the process that it starts, not to a successor,
 * which has it from the old process. A PgBouncer does not know it.
 */
static usec_t watchdog_of(const struct daemon *daemon)
{
	const usec_t limit = daemon->process.watchdog;

	return limit > 0 || daemon->options->main_process == 0 ? limit : WATCHDOG_DEFAULT;
}

bool lifecycle_start(
	struct daemon *daemon, const struct options *options, struct snapshot *config)
{
	daemon->options = options;
	if (!workers_may_be_bound(snapshot_settings(config)) || !make_loop(daemon)) {
		snapshot_unref(config);
		return false;
	}
	if (!make_registry(daemon, config))
		return false;
	apply_receive_limit(daemon);
	tls_setup_note_files(daemon->registry.process->settings, &daemon->file_watch.files);
	file_list_tidy(&daemon->file_watch.files);
	if (!tls_setup_start(&daemon->registry))
		return refuse("TLS setup failed");
	descriptor_limit_log(&daemon->registry);
	if (!listen_all(daemon))
		return false;
	make_metrics(daemon);
	janitor_start(&daemon->janitor, &daemon->registry, after_upkeep);
	/*
	 * Before a takeover is committed: should the kernel refuse a thread, the old process goes on.
	 * The other workers stand still until lifecycle_run().
	 */
	if (!workers_start(daemon))
		return false;
	process_stop_others(&daemon->process);
	if (!(daemon->takeover ? finish_takeover(daemon) : serve_metrics(daemon)))
		return false;
	descriptor_limit_count_others(&daemon->registry);
	systemd_watchdog_start(&daemon->loop, &daemon->process.crew, watchdog_of(daemon));
	watch_files(daemon);
	return true;
}

/* --- life --------------------------------------------------------------------------------- */

bool lifecycle_run(struct daemon *daemon)
{
	log_write(LEVEL_LOG, "process up: %s, libevent %s (%s), adns: %s, tls: %s",
		daemon->process.version, event_get_version(),
		event_base_get_method(daemon->loop.base), version_of_adns(), version_of_tls());
	systemd_ready();
	service_reload_succeeded();
	process_let_others_run(&daemon->process);
	crew_run(&daemon->process.crew);
	return !daemon->failed;
}

/* --- end ---------------------------------------------------------------------------------- */

/*
 * Are descriptors shared with another process: connections of this process that a new one has
 * taken over, or those of an old process that are not committed? Then nothing is sent on them,
 * and the file of the Unix socket is not removed.
 */
static bool shares_links(const struct daemon *daemon)
{
	return daemon->registry.process->operation == OPERATION_SUSPENDED || daemon->takeover;
}

static void end_registry(struct daemon *daemon)
{
	struct registry *registry = &daemon->registry;
	const struct process *process = &daemon->process;
	struct registry *each;

	control_close_all(
		registry, shares_links(daemon) ? REASON_DISKO_OVER : REASON_PROCESS_ENDS);
	/* Deliver the mail about that. */
	crew_stop(&daemon->process.crew);
	suspend_end(registry);
	peer_discovery_end(registry);
	EACH_REGISTRY (each, process) {
		watching_end(each);
		/* All logins have ended. Threads that are busy are left behind, not waited for. */
		if (workers_end_parts(each) > 0)
			daemon->threads_remain = true;
	}
	tls_context_unref(registry->process->client_tls);
	tls_context_unref(registry->process->server_tls);
	tls_context_unref(registry->process->metrics_tls);
	EACH_REGISTRY (each, process)
		loop_end_turn(each->loop);
	workers_free_registries(daemon);
	registry_free(registry);
	process_free(&daemon->process);
}

void lifecycle_end(struct daemon *daemon)
{
	workers_stop(daemon);
	handover_end(daemon);
	file_watch_end(&daemon->file_watch);
	if (daemon->made >= DAEMON_MADE_LISTENERS) {
		succession_end(daemon);
		systemd_watchdog_stop(&daemon->loop);
		janitor_stop(&daemon->janitor);
		listeners_close_all(&daemon->listeners, !shares_links(daemon));
	}
	if (daemon->made >= DAEMON_MADE_REGISTRY) {
		metrics_close(&daemon->metrics);
		end_registry(daemon);
	}
	if (daemon->made >= DAEMON_MADE_LOOP) {
		signals_end(daemon);
		workers_free_loops(daemon);
		loop_free(&daemon->loop);
	}
	takeover_free(daemon->takeover);
	pidfile_remove(&daemon->pidfile);
}
