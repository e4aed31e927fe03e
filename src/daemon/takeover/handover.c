/* SPDX-License-Identifier: ISC */
#include "daemon/takeover/handover.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "admin/console/console.h"
#include "base/log.h"
#include "daemon/daemon.h"
#include "daemon/stop.h"
#include "daemon/takeover/handover_parts.h"
#include "net/passing.h"
#include "session/link/close.h"
#include "session/takeover/inventory.h"
#include "wire/writer.h"

enum {
	/* Period of the timer before and after the commit. */
	SETTLE_MILLISECONDS = 2,
	COMMITTED_MILLISECONDS = 100,
};

/* How long the new process may send no COMMIT while all links are out of the loop. */
#define COMMIT_LIMIT (10 * USEC_PER_SEC)

enum stage { STAGE_SETTLING, STAGE_SENDING, STAGE_SENT, STAGE_COMMITTED };

struct handover {
	struct daemon *daemon;
	struct event *timer; /* owned */
	struct passing *passing; /* owned; set while the inventory is sent */
	uint64_t console; /* id of the link that gave the command */
	enum stage stage;
	usec_t since; /* when the stage began */
};

static struct client_link *find_console(const struct handover *handover)
{
	struct link *link;

	TAILQ_FOREACH (link, &handover->daemon->registry.console_pool->clients, place) {
		if (link->id == handover->console)
			return client_of(link);
	}
	return NULL;
}

/* Put everything that this process still has back to work. */
static void resume_links(struct handover *handover)
{
	struct registry *registry = &handover->daemon->registry;

	const bool was_still = registry->process->still;
	struct registry *each;

	registry->process->draining = registry->process->still = false;
	handover_attach_links(registry);
	EACH_REGISTRY (each, registry->process) {
		if (!TAILQ_EMPTY(&each->work) || !TAILQ_EMPTY(&each->caps_due))
			loop_defer_work(each->loop, &each->work_task, each->do_work);
	}
	console_resume(registry);
	if (was_still)
		process_let_others_run(registry->process);
}

/* --- sending ------------------------------------------------------------------------------ */

static void on_sent(void *context, bool sent)
{
	struct handover *handover = context;

	passing_free(handover->passing);
	handover->passing = NULL;
	handover->stage = STAGE_SENT;
	handover->since = loop_now(&handover->daemon->loop);
	if (!sent)
		handover_give_up(handover->daemon);
}

static bool take_record(void *context, const struct buffer *record, int fd)
{
	return passing_add(context, record->data, record->length, fd);
}

static bool add_metrics(struct passing *passing, int fd)
{
	struct buffer out = {0};
	bool added;

	if (fd < 0)
		return true;
	inventory_metrics(&out);
	added = !out.failed && passing_add(passing, out.data, out.length, fd);
	buffer_free(&out);
	return added;
}

static bool add_end(struct passing *passing)
{
	struct buffer out = {0};
	bool added;

	writer_command_complete(&out, "HANDOVER");
	writer_ready(&out, READY_IDLE);
	added = !out.failed && passing_add(passing, out.data, out.length, -1);
	buffer_free(&out);
	return added;
}

static bool send_inventory(struct handover *handover, struct client_link *console)
{
	struct registry *registry = &handover->daemon->registry;
	struct stream *stream = &console->link.stream;

	handover->passing = passing_new(stream->loop, stream->fd, on_sent, handover);
	return handover->passing && inventory_write(registry, take_record, handover->passing) &&
		add_metrics(handover->passing, handover->daemon->passed.metrics) &&
		add_end(handover->passing) && passing_begin(handover->passing);
}

static void begin_sending(struct handover *handover, struct client_link *console)
{
	struct registry *registry = &handover->daemon->registry;

	/* Until resume_links(). */
	registry->process->still = true;
	process_stop_others(registry->process);
	handover_detach_links(registry, handover->console);
	handover->stage = STAGE_SENDING;
	handover->since = loop_now(registry->loop);
	if (!send_inventory(handover, console))
		handover_give_up(handover->daemon);
}

/* --- committed ---------------------------------------------------------------------------- */

static void set_timer(const struct handover *handover, int milliseconds)
{
	const struct timeval interval = {.tv_usec = milliseconds * 1000};

	event_add(handover->timer, &interval);
}

/*
 * Close everything that the new process has now, and serve what stayed until it ends. The files
 * of the sockets are left to the new process.
 */
static void finish(struct handover *handover)
{
	struct daemon *daemon = handover->daemon;
	struct registry *registry = &daemon->registry;

	handover_close_sent(registry);
	listeners_close_all(&daemon->listeners, false);
	succession_end(daemon);
	pidfile_remove(&daemon->pidfile);
	metrics_close(&daemon->metrics);
	handover->stage = STAGE_COMMITTED;
	daemon->handed_over = true;
	systemd_end();
	resume_links(handover);
	log_write(LEVEL_LOG, "handed over to another process, %u connections stay",
		registry->process->limits.clients);
	set_timer(handover, COMMITTED_MILLISECONDS);
	stop_gracefully(daemon, SHUTDOWN_WAIT_FOR_CLIENTS);
}

/* --- timer -------------------------------------------------------------------------------- */

static void advance(struct handover *handover)
{
	struct client_link *console = find_console(handover);
	const usec_t waited = loop_now(&handover->daemon->loop) - handover->since;

	switch (handover->stage) {
	case STAGE_SETTLING:
		if (!console)
			handover_give_up(handover->daemon);
		else if (handover_settle(&handover->daemon->registry, waited))
			begin_sending(handover, console);
		break;
	case STAGE_SENDING:
	case STAGE_SENT:
		if (console && waited > COMMIT_LIMIT)
			client_close_for(console, REASON_SUSPEND_TIMEOUT);
		if (!console || waited > COMMIT_LIMIT)
			handover_give_up(handover->daemon);
		break;
	case STAGE_COMMITTED:
		handover_close_resting(&handover->daemon->registry);
		break;
	}
}

static void on_timer(evutil_socket_t fd, short what, void *argument)
{
	struct handover *handover = argument;
	struct process *process = &handover->daemon->process;

	(void)fd;
	(void)what;
	process_stop_others(process);
	advance(handover);
	process_let_others_run(process);
}

/* --- begin and end ------------------------------------------------------------------------ */

const char *handover_begin(struct daemon *daemon, struct client_link *console)
{
	struct registry *registry = &daemon->registry;
	struct handover *handover;

	if (daemon->handover)
		return "a takeover is in progress";
	if (registry->process->shutdown != SHUTDOWN_NONE)
		return "pooler is shutting down";
	if (registry->process->operation == OPERATION_SUSPENDED)
		return "already suspended/paused";
	handover = calloc(1, sizeof(*handover));
	if (handover)
		handover->timer =
			event_new(daemon->loop.base, -1, EV_PERSIST, on_timer, handover);
	if (!handover || !handover->timer) {
		free(handover);
		return "no mem";
	}
	handover->daemon = daemon;
	handover->console = console->link.id;
	handover->since = loop_now(&daemon->loop);
	daemon->handover = handover;
	registry->process->draining = true;
	listeners_pause(&daemon->listeners);
	set_timer(handover, SETTLE_MILLISECONDS);
	log_write(LEVEL_LOG, "HANDOVER command issued");
	return NULL;
}

/* Has the new process neither disconnected nor sent anything more? */
static bool is_connected(int fd)
{
	char byte;

	return recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) < 0 &&
		(errno == EAGAIN || errno == EWOULDBLOCK);
}

/*
 * Answer the commit before anything is closed, and only if the new process is still connected:
 * otherwise no process would have the connections.
 */
static bool send_committed(const struct client_link *console)
{
	struct buffer out = {0};
	bool sent;

	writer_command_complete(&out, "HANDOVER");
	writer_ready(&out, READY_IDLE);
	sent = !out.failed && is_connected(console->link.stream.fd) &&
		send(console->link.stream.fd, out.data, out.length,
			MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)out.length;
	buffer_free(&out);
	return sent;
}

const char *handover_commit(struct daemon *daemon, struct client_link *console)
{
	struct handover *handover = daemon->handover;

	if (!handover || handover->stage != STAGE_SENT || handover->console != console->link.id)
		return "no takeover is in progress";
	if (!send_committed(console)) {
		client_close_for(console, REASON_UNEXPECTED_EOF);
		handover_give_up(daemon);
		return NULL;
	}
	client_close_for(console, REASON_DISKO_OVER);
	finish(handover);
	return NULL;
}

static void free_handover(struct handover *handover)
{
	event_free(handover->timer);
	passing_free(handover->passing);
	free(handover);
}

void handover_give_up(struct daemon *daemon)
{
	struct handover *handover = daemon->handover;
	struct client_link *console;

	if (!handover || handover->stage == STAGE_COMMITTED)
		return;
	daemon->handover = NULL;
	log_write(LEVEL_WARNING, "the takeover has failed, going on");
	console = find_console(handover);
	if (console)
		client_close_for(console, REASON_SUSPEND_TIMEOUT);
	resume_links(handover);
	listeners_resume(&daemon->listeners);
	free_handover(handover);
}

void handover_end(struct daemon *daemon)
{
	if (daemon->handover)
		free_handover(daemon->handover);
	daemon->handover = NULL;
}
