/* SPDX-License-Identifier: ISC */
#include "daemon/stop.h"

#include "base/log.h"
#include "daemon/daemon.h"
#include "session/work/control.h"

void stop_gracefully(struct daemon *daemon, enum shutdown_mode mode)
{
	/* Suspended connections would never end by themselves. */
	if (daemon->registry.process->operation == OPERATION_SUSPENDED)
		control_resume(&daemon->registry, NULL);
	daemon->registry.process->shutdown = mode;
	daemon->registry.process->shutdown_at = loop_now(&daemon->loop);
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
