/* SPDX-License-Identifier: ISC */
/* Each signal has a row in the table below, and a function. */
#include "daemon/signals.h"

#include <event2/event.h>
#include <signal.h>

#include "admin/console/console.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/reload.h"
#include "daemon/stop.h"
#include "daemon/takeover/handover.h"
#include "session/serving/control.h"

static void on_hangup(struct daemon *daemon)
{
	log_write(LEVEL_LOG, "got SIGHUP, re-reading config");
	systemd_reloading();
	reload_run(daemon, NULL, 0);
	systemd_ready();
}

static void shut_down_or_stop(
	struct daemon *daemon, enum shutdown_mode mode, const char *name, const char *text)
{
	if (daemon->registry.process->operation == OPERATION_SUSPENDED) {
		/*
		 * A new process may be taking over the connections: it must not get only a
		 * part.
		 */
		stop_failed(daemon, "suspend was in progress, going down immediately");
		return;
	}
	if (daemon->registry.process->shutdown != SHUTDOWN_NONE) {
		log_write(LEVEL_LOG, "got %s while shutting down, fast exit", name);
		stop_now(daemon);
		return;
	}
	log_write(LEVEL_LOG, "got %s, shutting down, %s", name, text);
	systemd_stopping();
	stop_gracefully(daemon, mode);
}

static void on_terminate(struct daemon *daemon)
{
	shut_down_or_stop(daemon, SHUTDOWN_WAIT_FOR_CLIENTS, "SIGTERM",
		"waiting for all clients disconnect");
}

static void on_interrupt(struct daemon *daemon)
{
	shut_down_or_stop(daemon, SHUTDOWN_WAIT_FOR_SERVERS, "SIGINT",
		"waiting for all servers connections to be released");
}

static void on_quit(struct daemon *daemon)
{
	log_write(LEVEL_LOG, "got SIGQUIT, fast exit");
	stop_now(daemon);
}

static void on_pause(struct daemon *daemon)
{
	if (daemon->registry.process->operation != OPERATION_RUNNING) {
		log_write(LEVEL_LOG, "got SIGUSR1, but already paused/suspended");
		return;
	}
	log_write(LEVEL_LOG, "got SIGUSR1, pausing all activity");
	control_pause(&daemon->registry, NULL);
}

static void on_resume(struct daemon *daemon)
{
	struct registry *registry = &daemon->registry;

	if (registry->process->shutdown != SHUTDOWN_NONE) {
		log_write(LEVEL_LOG, "got SIGUSR2 while shutting down, ignoring");
	} else if (registry->process->operation != OPERATION_RUNNING) {
		log_write(LEVEL_LOG, "got SIGUSR2, continuing from %s",
			registry->process->operation == OPERATION_PAUSED ? "PAUSE" : "SUSPEND");
		control_resume(registry, NULL);
		console_tick(registry); /* answer the console that waits for its PAUSE */
	} else {
		log_write(LEVEL_LOG, "got SIGUSR2, but not paused/suspended");
	}
}

static const struct {
	int number;
	void (*act)(struct daemon *daemon);
} rows[] = {
	{SIGHUP, on_hangup},
	{SIGINT, on_interrupt},
	{SIGQUIT, on_quit},
	{SIGTERM, on_terminate},
	{SIGUSR1, on_pause},
	{SIGUSR2, on_resume},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
_Static_assert((int)ROWS <= (int)SIGNALS_MOST, "each signal has an event");

static void on_signal(evutil_socket_t number, short what, void *argument)
{
	struct daemon *daemon = argument;

	(void)what;
	process_stop_others(&daemon->process);
	/* Until its commit a handover can be given up: signals then act on all connections. */
	handover_give_up(daemon);
	for (size_t i = 0; i < ROWS; i++) {
		if (rows[i].number == number)
			rows[i].act(daemon);
	}
	process_let_others_run(&daemon->process);
}

bool signals_start(struct daemon *daemon)
{
	struct event **events = daemon->signals.events;

	for (size_t i = 0; i < ROWS; i++) {
		events[i] = evsignal_new(daemon->loop.base, rows[i].number, on_signal, daemon);
		if (!events[i] || event_add(events[i], NULL) != 0)
			return false;
	}
	return true;
}

void signals_end(struct daemon *daemon)
{
	struct event **events = daemon->signals.events;

	for (size_t i = 0; i < ROWS; i++) {
		if (events[i])
			event_free(events[i]);
		events[i] = NULL;
	}
}
