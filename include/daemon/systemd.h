/* SPDX-License-Identifier: ISC */
/*
 * The service manager: notifications to it, and the sockets that it passes.
 *
 * All functions do nothing in a process that was not started by a service manager, and
 * libsystemd is not even loaded then. Protocol: sd_notify(3), sd_listen_fds(3),
 * sd_watchdog_enabled(3), systemd.service(5). Notifications never block: if the socket of a hanging manager is full
 * they are lost, but a lost READY=1 is sent again before the next notification.
 */
#ifndef PGUSHER_DAEMON_SYSTEMD_H
#define PGUSHER_DAEMON_SYSTEMD_H

#include <stdbool.h>

#include "net/crew/crew.h"
#include "net/listener.h"
#include "net/loop.h"

enum { SYSTEMD_SOCKETS_MOST = 64 };

/* Passed sockets, sorted by the names that their units, or we, gave them. */
struct systemd_sockets {
	struct listen_socket clients[SYSTEMD_SOCKETS_MOST]; /* accept clients; any other name */
	unsigned client_count;
	int metrics; /* named `metrics`; -1: none */
	/* Kept for us since systemd_keep_sockets() of an earlier process; -1: used, or closed. */
	int kept[SYSTEMD_SOCKETS_MOST];
	unsigned kept_count;
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

/*
 * Leave copies of these sockets with the manager, in place of those left before: it passes them
 * to the next process of the service if this one dies. Needs FileDescriptorStoreMax= in the unit.
 */
void systemd_keep_sockets(const int *sockets, unsigned count);

/* Make the manager close its copies. */
void systemd_forget_sockets(void);

/* Close the kept sockets that were not used. */
void systemd_close_kept(struct systemd_sockets *sockets);

/* Can this process notify a service manager? Without NotifyAccess=all an ExecReload cannot. */
bool systemd_can_notify(void);

/*
 * Tell the manager that another process is the main process of the service from now on. Returns
 * false if it was not told.
 */
bool systemd_main_process(pid_t process);

/* Notify nothing any more: another process of the service does. */
void systemd_end(void);

/* Notify the manager that the start, or a reload, is complete. */
void systemd_ready(void);

/* ... that a reload begins. */
void systemd_reloading(void);

/* ... that a shutdown begins. */
void systemd_stopping(void);

/* ... of the status, one line of text. Not sent while the progress of something is shown. */
void systemd_status(const char *text);

/* Show how far something is, in place of the status; NULL: it has ended. */
void systemd_progress(const char *text);

/* Time after which the manager's watchdog ends a process that is silent; 0: it has no watchdog. */
usec_t systemd_watchdog(void);

/*
 * Send the manager keep-alive messages, as a watchdog of this time expects, for as long as the loop
 * and all others of the crew run. Does nothing for the time 0.
 */
void systemd_watchdog_start(struct loop *loop, struct crew *crew, usec_t limit);
void systemd_watchdog_stop(struct loop *loop);

#endif
