/* SPDX-License-Identifier: ISC */
/*
 * The command of a unit's ExecReload, `--reload=PID`: makes the main process of the service read
 * its configuration again, and a package's upgrade take effect without a cut.
 *
 * If the main process runs the same program file as this one, it gets SIGHUP. If it runs another
 * one, since the file was replaced, a successor is started: a new process inside the service that
 * takes over from the main process as with -R, and that the manager then knows as the main
 * process (systemd.service(5), NotifyAccess=all).
 */
#ifndef PGUSHER_DAEMON_SERVICE_RELOAD_H
#define PGUSHER_DAEMON_SERVICE_RELOAD_H

#include <stdbool.h>

#include "daemon/options.h"

enum service_reload {
	SERVICE_RELOAD_DONE, /* exit with status 0 */
	SERVICE_RELOAD_FAILED, /* the reason is on stderr; exit with status 1 */
	SERVICE_RELOAD_SUCCESSOR, /* this is the new process: run */
};

/*
 * Check the configuration of the options, and act. May fork: on SERVICE_RELOAD_SUCCESSOR this is
 * the child, and `options` tells it to take over; the command itself waits for it.
 */
enum service_reload service_reload(struct options *options);

/*
 * In the successor: tell the waiting command that this process serves now. Does nothing in other
 * processes. A successor that ends without it has failed.
 */
void service_reload_succeeded(void);

#endif
