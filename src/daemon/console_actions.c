/* SPDX-License-Identifier: ISC */
#include "daemon/console_actions.h"

#include "admin/console/console.h"
#include "daemon/daemon.h"
#include "daemon/reload.h"
#include "daemon/stop.h"
#include "daemon/takeover/handover.h"

static bool on_reload(struct registry *registry, char *report, size_t size)
{
	return reload_run(daemon_of(registry), report, size);
}

static bool on_set(
	struct registry *registry, const char *key, const char *value, char *why, size_t size)
{
	return reload_set(daemon_of(registry), key, value, why, size);
}

static void on_shutdown(struct registry *registry, enum shutdown_mode mode, bool now)
{
	/* The new process would not learn that it has to shut down too. */
	handover_give_up(daemon_of(registry));
	if (now)
		stop_now(daemon_of(registry));
	else
		stop_gracefully(daemon_of(registry), mode);
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

void console_actions_connect(struct daemon *daemon)
{
	struct process *process = &daemon->process;

	daemon->actions =
		(struct actions){on_reload, on_set, on_shutdown, on_hand_over, on_commit};
	process->suspend = (struct suspend_hooks){on_accept, console_tick};
	process->actions = &daemon->actions;
	process->console = console_hooks;
}
