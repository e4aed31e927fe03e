/* SPDX-License-Identifier: ISC */
/*
 * The service manager: what it is told about us, and the sockets it passes.
 *
 * Everything here does nothing in a process that no service manager has started, and libsystemd
 * is not even loaded then. Protocol: sd_notify(3), sd_listen_fds(3), sd_watchdog_enabled(3).
 * Telling never waits: what a manager that hangs has no room for is lost, but READY=1 goes out
 * in front of the next message that it takes.
 */
#ifndef PGUSHER_DAEMON_SYSTEMD_H
#define PGUSHER_DAEMON_SYSTEMD_H

#include <stdbool.h>

#include "net/loop.h"

enum { SYSTEMD_SOCKETS_MOST = 64 };

/* Sockets that were passed, by what their unit calls them. */
struct systemd_sockets {
	int clients
		[SYSTEMD_SOCKETS_MOST]; /* to accept clients on: any name but the one below */
	unsigned client_count;
	int metrics; /* called `metrics`; -1: none */
};

/* Is there anything in the environment that means us? */
bool systemd_is_there(void);

/* Was this program built to speak with it? */
bool systemd_is_built(void);

/*
 * Take the passed sockets, which are the caller's from now on, and their words out of the
 * environment. Before anything forks. False when they cannot be taken.
 */
bool systemd_take_sockets(struct systemd_sockets *out);

/* Tell it that we are up, or that a reload is over. */
void systemd_ready(void);

/* ... that the configuration is being read anew. */
void systemd_reloading(void);

/* ... that we are about to end. */
void systemd_stopping(void);

/* ... how we are, in a line. */
void systemd_status(const char *text);

/* Where it watches us: give a sign of life in good time, as long as the loop turns. */
void systemd_watchdog_start(struct loop *loop);
void systemd_watchdog_stop(struct loop *loop);

#endif
