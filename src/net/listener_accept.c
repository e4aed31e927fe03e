/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "net/listener_parts.h"

/* How long the set rests after accept() failed. */
#define REST_TIME (5 * USEC_PER_SEC)

/* How long it rests when there is no room: clients that are refused leave soon. */
#define ROOM_TIME (USEC_PER_SEC / 50)

enum {
	/* Most connections accepted per event, so that other connections get their turn. */
	ACCEPT_MOST = 64,
	/*
	 * After several connections came at once: try so many times in vain before one
	 * suffices.
	 */
	EAGER_TIMES = 8,
};

static bool must_accept(const struct listeners *set)
{
	return !set->paused && !set->resting;
}

static void watch(struct listener *listener)
{
	if (event_add(&listener->event, NULL) != 0)
		log_write(LEVEL_ERROR, "cannot wait for connections: %m");
}

/* Add or remove the events, according to `paused` and `resting`. */
static void watch_all(struct listeners *set)
{
	struct listener *listener;

	TAILQ_FOREACH (listener, &set->list, entry) {
		if (must_accept(set))
			watch(listener);
		else
			event_del(&listener->event);
	}
}

/* --- rests ------------------------------------------------------------------------------ */

void listeners_give_spare(struct listeners *set)
{
	if (set->spare >= 0)
		close(set->spare);
	set->spare = -1;
}

bool listeners_take_spare(struct listeners *set)
{
	if (set->spare < 0)
		set->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return set->spare >= 0;
}

/* While descriptors are short many rests may end early: log once per full rest. */
static bool must_complain(struct listeners *set)
{
	const usec_t now = loop_now(set->loop);

	if (set->complained != 0 && now - set->complained < REST_TIME)
		return false;
	set->complained = now;
	return true;
}

static void rest_for(struct listeners *set, usec_t time)
{
	set->resting = true;
	watch_all(set);
	wheel_set(&set->loop->wheel, &set->retry, loop_now(set->loop) + time);
}

static bool has_room(const struct listeners *set)
{
	return !set->has_room || set->has_room(set->context);
}

static void rest_without_room(struct listeners *set)
{
	if (must_complain(set))
		log_write(LEVEL_ERROR,
			"accepting no connections for now: all file descriptors are in use "
			"(RLIMIT_NOFILE)");
	set->rests_for_descriptors++;
	rest_for(set, ROOM_TIME);
}

static void rest(struct listeners *set, int error)
{
	if (must_complain(set)) {
		errno = error;
		log_write(LEVEL_ERROR, "accept() failed: %m");
	}
	if (error == EMFILE || error == ENFILE) {
		set->rests_for_descriptors++;
		listeners_give_spare(set);
	} else {
		set->rests_for_memory++;
	}
	rest_for(set, REST_TIME);
}

void listeners_try_again(struct listeners *set)
{
	if (!set->resting) {
		listeners_take_spare(set);
		return;
	}
	if (!has_room(set) || !listeners_take_spare(set))
		return;
	set->resting = false;
	deadline_cancel(&set->retry);
	watch_all(set);
}

void listeners_on_rested(struct deadline *retry)
{
	struct listeners *set =
		(struct listeners *)((char *)retry - offsetof(struct listeners, retry));

	listeners_try_again(set);
	if (set->resting)
		wheel_set(&set->loop->wheel, &set->retry,
			loop_now(set->loop) + (set->spare >= 0 ? ROOM_TIME : REST_TIME));
}

/* --- accepting -------------------------------------------------------------------------- */

/* Returns whether accept(2) reports an error of the connection, not of the listening socket. */
static bool is_fault_of_peer(int error)
{
	switch (error) {
	case ECONNABORTED:
	case EINTR:
	case EPERM: /* a firewall rule */
	case EPROTO:
	case ENETDOWN:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
		return true;
	default:
		return false;
	}
}

enum accept_result { ACCEPTED, SKIPPED, NONE_WAITS };

static enum accept_result accept_one(struct listener *listener)
{
	struct listeners *set = listener->set;
	struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
	socklen_t length = sizeof(from);
	int fd = accept4(
		listener->fd, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

	/* The owner knows of room where the kernel has none: the limit was lowered. */
	if (fd < 0 && errno == EMFILE && set->has_room && set->spare >= 0) {
		listeners_give_spare(set);
		length = sizeof(from);
		fd = accept4(listener->fd, (struct sockaddr *)&from, &length,
			SOCK_NONBLOCK | SOCK_CLOEXEC);
	}
	if (fd >= 0) {
		set->accepted(set->context, fd, (const struct sockaddr *)&from, length,
			listener->is_unix);
		return ACCEPTED;
	}
	if (is_fault_of_peer(errno))
		return SKIPPED;
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		rest(set, errno);
	return NONE_WAITS;
}

/*
 * Returns how many connections to accept now. Usually one: a second accept() that finds none
 * would cost each login a system call, and a connection that does wait makes the socket
 * readable in the next turn. If that has happened lately, accept all that wait: logins that are
 * handled together wake clients and servers less often, and a wake-up costs several calls.
 */
static unsigned allowance(struct listener *listener)
{
	const uint64_t turn = listener->set->loop->turn;

	if (turn == listener->last_turn + 1)
		listener->eager = EAGER_TIMES;
	listener->last_turn = turn;
	return listener->eager > 0 ? ACCEPT_MOST : 1;
}

/* The callback may pause the set, but does not close listeners: only the daemon does. */
static void accept_some(struct loop_task *task)
{
	struct listener *listener =
		(struct listener *)((char *)task - offsetof(struct listener, arrivals));
	const unsigned most = allowance(listener);
	unsigned taken = 0;

	while (taken < most && must_accept(listener->set)) {
		if (!has_room(listener->set)) {
			rest_without_room(listener->set);
			break;
		}
		if (accept_one(listener) == NONE_WAITS)
			break;
		taken++;
	}
	if (taken > 1)
		listener->eager = EAGER_TIMES;
	else if (listener->eager > 0)
		listener->eager--;
}

/*
 * Accept after the other events of the turn: when a client has disconnected, its place within
 * the limits is free for a new one.
 */
static void on_connections(evutil_socket_t fd, short what, void *argument)
{
	struct listener *listener = argument;

	(void)fd;
	(void)what;
	loop_defer_arrivals(listener->set->loop, &listener->arrivals, accept_some);
}

void listeners_pause(struct listeners *set)
{
	set->paused = true;
	watch_all(set);
}

void listeners_resume(struct listeners *set)
{
	set->paused = false;
	watch_all(set);
}

/* --- one of the set --------------------------------------------------------------------- */

int listener_family(int fd)
{
	struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
	socklen_t length = sizeof(address);
	int listens = 0, type = 0;
	socklen_t size = sizeof(listens);

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens)
		return AF_UNSPEC;
	size = sizeof(type);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
		return AF_UNSPEC;
	if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
		return AF_UNSPEC;
	return address.ss_family;
}

struct listener *listener_new(struct listeners *set, int fd)
{
	struct listener *listener = calloc(1, sizeof(*listener));

	if (!listener)
		return NULL;
	listener->set = set;
	listener->fd = fd;
	listener->last_turn = UINT64_MAX; /* not readable yet */
	event_assign(&listener->event, set->loop->base, fd, EV_READ | EV_PERSIST,
		on_connections, listener);
	return listener;
}

void listener_free(struct listener *listener)
{
	TAILQ_REMOVE(&listener->set->list, listener, entry);
	loop_forget(listener->set->loop, &listener->arrivals);
	event_del(&listener->event);
	close(listener->fd);
	free(listener);
}

const char *listener_text(const struct listener *listener, char out[LISTENER_TEXT_SIZE])
{
	char text[ADDRESS_TEXT_SIZE];

	if (listener->is_unix)
		snprintf(out, LISTENER_TEXT_SIZE, "unix:%s", listener->path);
	else
		snprintf(out, LISTENER_TEXT_SIZE, "%s", address_text(&listener->address, text));
	return out;
}

void listener_start(struct listener *listener)
{
	char text[LISTENER_TEXT_SIZE];

	TAILQ_INSERT_TAIL(&listener->set->list, listener, entry);
	watch(listener);
	log_write(LEVEL_LOG, "listening on %s", listener_text(listener, text));
}
