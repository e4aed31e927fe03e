/* SPDX-License-Identifier: ISC */
#include "daemon/stop.h"

#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/shutdown.h"
#include "session/serving/control.h"

void stop_gracefully(struct daemon *daemon, enum shutdown_mode mode)
{
	struct process *process = &daemon->process;

	/* The time goes on that the command before it has begun. */
	if (mode == SHUTDOWN_WAIT_FOR_CLIENTS && process->drain != DRAIN_NONE)
		return;
	/* Suspended connections would never end by themselves. */
	if (process->operation == OPERATION_SUSPENDED)
		control_resume(&daemon->registry, NULL);
	/* A socket that the manager keeps would go on listening: clients would wait for nothing. */
	systemd_forget_sockets();
	process->shutdown = mode;
	process->shutdown_at = loop_now(&daemon->loop);
	process->shutdown_clients = process->limits.clients - process->limits.consoles;
	process->drain = DRAIN_NONE;
	drain_end(&daemon->drain);
	/* What is left after a takeover is not drained: other clients go on in the new process. */
	if (mode == SHUTDOWN_WAIT_FOR_CLIENTS && !daemon->handed_over)
		shutdown_begin_drain(daemon);
	else
		listeners_close_tcp(&daemon->listeners);
	if (mode == SHUTDOWN_WAIT_FOR_SERVERS)
		control_pause(&daemon->registry, NULL);
	janitor_begin_shutdown(&daemon->janitor);
}

void stop_now(struct daemon *daemon)
{
	loop_stop(&daemon->loop);
}

void stop_failed(struct daemon *daemon, const char *why)
{
	log_write(LEVEL_FATAL, "%s", why);
	daemon->failed = true;
	loop_stop(&daemon->loop);
}
