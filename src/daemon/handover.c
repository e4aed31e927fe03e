/* SPDX-License-Identifier: ISC */
#include "daemon/handover.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "admin/console/console.h"
#include "base/log.h"
#include "daemon/lifecycle.h"
#include "net/passing.h"
#include "session/link/close.h"
#include "session/pool/pairing.h"
#include "session/takeover/inventory.h"
#include "session/work/client_session.h"
#include "session/work/control.h"
#include "wire/writer.h"

enum {
	LOOK_MILLISECONDS = 2,
	LEAVE_MILLISECONDS = 100,
};

/* How long servers may take to log in, before we do without them. */
#define LOGIN_GRACE (USEC_PER_SEC / 2)

/* How long the new process may say nothing while nothing moves. */
#define COMMIT_LIMIT (10 * USEC_PER_SEC)

enum stage { STAGE_SETTLING, STAGE_SENDING, STAGE_SENT, STAGE_LEAVING };

struct handover {
	struct daemon *daemon;
	struct event *timer; /* owned */
	struct passing *passing; /* owned; NULL: not begun, or all is sent */
	uint64_t console; /* its id */
	enum stage stage;
	usec_t since; /* of the stage */
};

/* --- walks -------------------------------------------------------------------------------- */

typedef void link_function(struct link *link, const struct handover *handover);

static void each_of(
	const struct link_list *list, link_function *act, const struct handover *handover)
{
	struct link *link, *next;

	TAILQ_FOREACH_SAFE (link, list, place, next)
		act(link, handover);
}

/* Every connection there is; it may be closed by that. */
static void each_link(link_function *act, const struct handover *handover)
{
	struct registry *registry = &handover->daemon->registry;
	struct link *link;
	struct pool *pool;

	each_of(&registry->logins, act, handover);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		struct pool_walk walk = pool_walk_links(pool);

		while ((link = pool_walk_next(&walk)) != NULL)
			act(link, handover);
	}
}

static struct client_link *find_console(const struct handover *handover)
{
	struct link *link;

	TAILQ_FOREACH (link, &handover->daemon->registry.console_pool->clients, place) {
		if (link->id == handover->console)
			return client_of(link);
	}
	return NULL;
}

/* --- settling ----------------------------------------------------------------------------- */

static bool has_encrypted_server(const struct pool *pool)
{
	struct pool_walk walk = pool_walk_servers(pool);
	const struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL) {
		if (link->stream.tls)
			return true;
	}
	return false;
}

/* Those without a server begin nothing; those who have one go on to the end of a transaction. */
static void rest_clients(struct link_list *clients)
{
	struct link *link;

	TAILQ_FOREACH (link, clients, place) {
		if (client_mode(client_of(link)) == POOL_MODE_SESSION)
			continue;
		if (link->stream.handlers == &client_session_handlers)
			stream_set_handlers(&link->stream, &client_suspend_handlers);
		if (link->state == CLIENT_IDLE && link->held_length == 0 &&
			link->remaining == 0 && !link->stream.frozen)
			stream_freeze(&link->stream);
	}
}

/* Clients that could go, if they had not a server that cannot. */
static bool has_bound_clients(const struct pool *pool)
{
	const struct link *link;

	TAILQ_FOREACH (link, &pool->clients, place) {
		if (link->peer && link->peer->stream.tls && !link->stream.tls &&
			client_mode((const struct client_link *)link) != POOL_MODE_SESSION)
			return true;
	}
	return false;
}

/* In session mode that might never end. */
static bool free_bound_clients(struct pool *pool)
{
	if (!has_encrypted_server(pool))
		return true;
	rest_clients(&pool->clients);
	rest_clients(&pool->waiting);
	return !has_bound_clients(pool);
}

/*
 * A batch that is about to be said again cannot be told, nor what is kept of a client's messages
 * until our SETs before them have ended; that takes a moment.
 */
static bool has_hurried_server(const struct pool *pool)
{
	const struct link *link;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place) {
		const struct server_link *server = (const struct server_link *)link;

		if (server->replaying || server_has_gathered(server))
			return true;
	}
	return false;
}

static bool is_pool_settled(struct pool *pool, bool may_log_in)
{
	const bool free = free_bound_clients(pool);

	return free && pool->looking_up == 0 && !has_hurried_server(pool) &&
		pool->client_count[CLIENT_CANCEL_WAITING] == 0 &&
		pool->client_count[CLIENT_CANCEL_SENT] == 0 &&
		pool->server_count[SERVERS_ACTIVE_CANCEL] == 0 &&
		pool->server_count[SERVERS_BEING_CANCELED] == 0 &&
		(!may_log_in || pool->server_count[SERVERS_LOGIN] == 0);
}

static bool are_logins_settled(const struct registry *registry)
{
	const struct link *link;

	TAILQ_FOREACH (link, &registry->logins, place) {
		if (!inventory_includes(link) && !link->stream.tls)
			return false;
	}
	return true;
}

static bool is_settled(struct handover *handover)
{
	struct registry *registry = &handover->daemon->registry;
	const usec_t waited = loop_now(registry->loop) - handover->since;
	const usec_t limit = registry->process->settings->suspend_timeout;
	bool settled = are_logins_settled(registry);
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (!pool->database->console)
			settled = is_pool_settled(pool, waited < LOGIN_GRACE) && settled;
	}
	return settled || (limit > 0 && waited > limit);
}

/* --- stillness ---------------------------------------------------------------------------- */

/* What is in the middle of something that cannot be told, and has had its time. */
static void close_unsettled(struct link *link, const struct handover *handover)
{
	(void)handover;
	if (inventory_includes(link) || link->stream.tls)
		return;
	if (link->kind == LINK_CLIENT && !client_is_logged_in(client_of(link)) &&
		link->state != CLIENT_CLOSED)
		client_close_for(client_of(link), REASON_SUSPEND_TIMEOUT);
	else if (link->kind == LINK_SERVER && link->state != SERVER_CLOSED &&
		server_list_of(server_state(server_of(link))) != SERVERS_ACTIVE)
		server_close_for(server_of(link), REASON_UNSAFE_ON_SUSPEND);
}

/* Servers that log in are not in the middle of anything that a client waits for in vain. */
static void detach(struct link *link, const struct handover *handover)
{
	if (link->kind == LINK_SERVER && link->state < SERVER_IDLE)
		server_close_for(server_of(link), REASON_UNSAFE_ON_SUSPEND);
	else if (link->id != handover->console)
		stream_detach(&link->stream);
}

static void attach(struct link *link, const struct handover *handover)
{
	(void)handover;
	if (link->stream.handlers == &client_suspend_handlers)
		stream_set_handlers(&link->stream, &client_session_handlers);
	if (link->stream.frozen)
		stream_attach(&link->stream);
}

/* All that is left goes on. */
static void go_on(struct handover *handover)
{
	struct registry *registry = &handover->daemon->registry;

	registry->process->draining = registry->process->still = false;
	each_link(attach, handover);
	if (!TAILQ_EMPTY(&registry->work))
		loop_defer_work(registry->loop, &registry->work_task, registry->do_work);
	console_resume(registry);
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
		add_end(handover->passing) && passing_begin(handover->passing);
}

static void hold_still(struct handover *handover, struct client_link *console)
{
	struct registry *registry = &handover->daemon->registry;

	registry->process->still = true;
	each_link(close_unsettled, handover);
	each_link(detach, handover);
	handover->stage = STAGE_SENDING;
	handover->since = loop_now(registry->loop);
	if (!send_inventory(handover, console))
		handover_give_up(handover->daemon);
}

/* --- leaving ------------------------------------------------------------------------------ */

static void leave_behind(struct link *link, const struct handover *handover)
{
	(void)handover;
	if (link->kind == LINK_CLIENT && link->state == CLIENT_CONSOLE)
		client_close_for(client_of(link), REASON_PROCESS_ENDS);
	if (!inventory_includes(link))
		return;
	if (link->kind == LINK_CLIENT && link->state != CLIENT_CLOSED)
		client_close_for(client_of(link), REASON_DISKO_OVER);
	else if (link->kind == LINK_SERVER && link->state != SERVER_CLOSED)
		server_close_for(server_of(link), REASON_DISKO_OVER);
}

/* A client that stayed and is between two transactions finds the new process when it comes back. */
static void see_off(struct link *link, const struct handover *handover)
{
	const struct server_link *server = (const struct server_link *)link->peer;

	(void)handover;
	if (link->kind != LINK_CLIENT || link->pool->database->console)
		return;
	if (link->state == CLIENT_IDLE ||
		(link->state == CLIENT_PAIRED && server->transaction_status == 'I' &&
			requests_is_empty(&server->requests)))
		client_close_for(client_of(link), REASON_SERVER_SHUTTING_DOWN);
}

/* Whoever resumes what is paused finds the new process, and not us. */
static void see_off_waiter(struct link *link, const struct handover *handover)
{
	(void)handover;
	client_close_for(client_of(link), REASON_SERVER_SHUTTING_DOWN);
}

static void see_off_all(struct handover *handover)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &handover->daemon->registry.pools, in_registry) {
		each_of(&pool->clients, see_off, handover);
		if (!pool_is_paused(pool))
			continue;
		each_of(&pool->waiting, see_off_waiter, handover);
		each_of(&pool->welcoming, see_off_waiter, handover);
	}
}

static void set_timer(const struct handover *handover, int milliseconds)
{
	const struct timeval interval = {.tv_usec = milliseconds * 1000};

	event_add(handover->timer, &interval);
}

/* Nobody finds us any more, and we have nothing that is not ours alone. */
static void leave(struct handover *handover)
{
	struct daemon *daemon = handover->daemon;
	struct registry *registry = &daemon->registry;

	each_link(leave_behind, handover);
	listeners_close_all(&daemon->listeners, false);
	pidfile_remove(&daemon->pidfile);
	metrics_close(&daemon->metrics);
	handover->stage = STAGE_LEAVING;
	go_on(handover);
	log_write(LEVEL_LOG, "handed over to another process, %u connections stay",
		registry->process->limits.clients);
	set_timer(handover, LEAVE_MILLISECONDS);
	lifecycle_shut_down(daemon, SHUTDOWN_WAIT_FOR_CLIENTS);
}

/* --- the whole ---------------------------------------------------------------------------- */

static void look(struct handover *handover)
{
	struct client_link *console = find_console(handover);
	const usec_t waited = loop_now(&handover->daemon->loop) - handover->since;

	switch (handover->stage) {
	case STAGE_SETTLING:
		if (!console)
			handover_give_up(handover->daemon);
		else if (is_settled(handover))
			hold_still(handover, console);
		break;
	case STAGE_SENDING:
	case STAGE_SENT:
		if (console && waited > COMMIT_LIMIT)
			client_close_for(console, REASON_SUSPEND_TIMEOUT);
		if (!console || waited > COMMIT_LIMIT)
			handover_give_up(handover->daemon);
		break;
	case STAGE_LEAVING:
		see_off_all(handover);
		break;
	}
}

static void on_timer(evutil_socket_t fd, short what, void *argument)
{
	(void)fd;
	(void)what;
	look(argument);
}

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
	set_timer(handover, LOOK_MILLISECONDS);
	log_write(LEVEL_LOG, "HANDOVER command issued");
	return NULL;
}

/* Is somebody there to go on with what we let go of? */
static bool is_there(int fd)
{
	char byte;

	return recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) < 0 &&
		(errno == EAGAIN || errno == EWOULDBLOCK);
}

/* It has to be told before we let go, and to be there for that. */
static bool tell_committed(const struct client_link *console)
{
	struct buffer out = {0};
	bool told;

	writer_command_complete(&out, "HANDOVER");
	writer_ready(&out, READY_IDLE);
	told = !out.failed && is_there(console->link.stream.fd) &&
		send(console->link.stream.fd, out.data, out.length,
			MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)out.length;
	buffer_free(&out);
	return told;
}

const char *handover_commit(struct daemon *daemon, struct client_link *console)
{
	struct handover *handover = daemon->handover;

	if (!handover || handover->stage != STAGE_SENT || handover->console != console->link.id)
		return "no takeover is in progress";
	if (!tell_committed(console)) {
		client_close_for(console, REASON_UNEXPECTED_EOF);
		handover_give_up(daemon);
		return NULL;
	}
	client_close_for(console, REASON_DISKO_OVER);
	leave(handover);
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

	if (!handover || handover->stage == STAGE_LEAVING)
		return;
	daemon->handover = NULL;
	log_write(LEVEL_WARNING, "the takeover has failed, going on");
	console = find_console(handover);
	if (console)
		client_close_for(console, REASON_SUSPEND_TIMEOUT);
	go_on(handover);
	listeners_resume(&daemon->listeners);
	free_handover(handover);
}

bool handover_has_left(const struct daemon *daemon)
{
	return daemon->handover && daemon->handover->stage == STAGE_LEAVING;
}

void handover_end(struct daemon *daemon)
{
	if (daemon->handover)
		free_handover(daemon->handover);
	daemon->handover = NULL;
}
