/* SPDX-License-Identifier: ISC */
/*
 * All parts of the running daemon, in one object. The modules of this floor take it as their
 * first argument; daemon/lifecycle makes the parts and takes them apart again.
 */
#ifndef PGUSHER_DAEMON_DAEMON_H
#define PGUSHER_DAEMON_DAEMON_H

#include <stdbool.h>
#include <stddef.h>

#include "admin/console/actions.h"
#include "admin/metrics/metrics.h"
#include "admin/page/page.h"
#include "daemon/file_watch.h"
#include "daemon/janitor.h"
#include "daemon/options.h"
#include "daemon/pidfile.h"
#include "daemon/progress/progress_lines.h"
#include "daemon/signals.h"
#include "daemon/systemd.h"
#include "daemon/takeover/succession.h"
#include "model/registry.h"
#include "net/listener.h"
#include "net/loop.h"
#include "session/serving/drain.h"

struct handover;
struct takeover;
struct worker;

/* The parts that lifecycle_start() has made, in this order, and lifecycle_end() has to free. */
enum daemon_made {
	DAEMON_MADE_NOTHING,
	DAEMON_MADE_LOOP,
	DAEMON_MADE_REGISTRY,
	DAEMON_MADE_LISTENERS,
};

struct daemon {
	const struct options *options;
	struct loop loop;
	struct process process;
	struct registry registry;
	struct worker *others; /* owned: the workers besides this one; NULL: none */
	struct listeners listeners;
	struct signals signals;
	struct janitor janitor;
	struct file_watch file_watch; /* of the configuration */
	struct progress_lines progress;
	struct drain drain; /* of clients, in a shutdown that waits for them */
	struct actions actions; /* functions that the console's commands call */
	struct metrics metrics;
	struct page page; /* for browsers, on the endpoint of metrics */
	struct pidfile pidfile;
	struct handover *handover; /* owned; to a new process; NULL: none in progress */
	struct takeover *takeover; /* owned; from an old process; NULL: none, or completed */
	struct succession succession; /* to the old process's pidfile and metrics address */
	struct systemd_sockets passed; /* sockets that the service manager passed */
	enum daemon_made made;
	bool handed_over; /* a new process has the listeners and all links that could be sent */
	bool failed; /* it ends because of an error, so the exit code is not 0 */
	bool threads_remain; /* after lifecycle_end(): a helper's thread is still running */
};

static inline struct daemon *daemon_of(struct registry *registry)
{
	return (struct daemon *)((char *)registry - offsetof(struct daemon, registry));
}

#endif
