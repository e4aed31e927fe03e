/* SPDX-License-Identifier: ISC */
/*
 * The service manager: notifications to it, and the sockets that it passes.
 *
 * All functions do nothing in a process that was not started by a service manager, and
 * libsystemd is not even loaded then. Protocol: sd_notify(3), sd_listen_fds(3),
 * sd_watchdog_enabled(3). Notifications never block: if the socket of a hanging manager is full
 * they are lost, but a lost READY=1 is sent again before the next notification.
 */
#ifndef PGUSHER_DAEMON_SYSTEMD_H
#define PGUSHER_DAEMON_SYSTEMD_H

#include <stdbool.h>

#include "net/loop.h"

enum { SYSTEMD_SOCKETS_MOST = 64 };

/* Passed sockets, sorted by the names that their units give them. */
struct systemd_sockets {
	int clients[SYSTEMD_SOCKETS_MOST]; /* accept clients; any name but `metrics` */
	unsigned client_count;
	int metrics; /* named `metrics`; -1: none */
};

/* Was this process started by a service manager, as its environment shows? */
bool systemd_is_there(void);

/* Was this program built with libsystemd? */
bool systemd_is_built(void);

/*
 * Take the passed sockets, which the caller owns from now on, and remove their variables from
 * the environment. Call it before any fork. Returns false when the sockets cannot be taken.
 */
bool systemd_take_sockets(struct systemd_sockets *out);

/* Notify the manager that the start, or a reload, is complete. */
void systemd_ready(void);

/* ... that a reload begins. */
void systemd_reloading(void);

/* ... that a shutdown begins. */
void systemd_stopping(void);

/* ... of the status, one line of text. */
void systemd_status(const char *text);

/*
 * If the manager has a watchdog: send it keep-alive messages in time, as long as the loop runs.
 */
void systemd_watchdog_start(struct loop *loop);
void systemd_watchdog_stop(struct loop *loop);

#endif
