/* SPDX-License-Identifier: ISC */
#include "net/listener.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"

/* How long the set rests after accept() failed. */
#define REST_TIME (5 * USEC_PER_SEC)

enum {
	/* Most connections that one event may bring: the others of this turn want to be served. */
	ACCEPT_MOST = 64,
	/* So often it is asked in vain whether there are more, after there were. */
	EAGER_TIMES = 8,
	/* With TCP_DEFER_ACCEPT: seconds until a connection is handed over without any bytes. */
	DEFER_SECONDS = 1,
	ADDRESS_ITEM_SIZE = 256,
};

/* --- accepting -------------------------------------------------------------------------- */

static bool must_accept(const struct listeners *set)
{
	return !set->paused && !set->resting;
}

static void watch(struct listener *listener)
{
	if (event_add(&listener->event, NULL) != 0)
		log_write(LEVEL_ERROR, "cannot wait for connections: %m");
}

/* Follow what `paused` and `resting` say. */
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

static void give_spare(struct listeners *set)
{
	if (set->spare >= 0)
		close(set->spare);
	set->spare = -1;
}

static bool take_spare(struct listeners *set)
{
	if (set->spare < 0)
		set->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return set->spare >= 0;
}

/* Descriptors come and go while they are short: a line per rest of full length is enough. */
static void complain(struct listeners *set, int error)
{
	const usec_t now = loop_now(set->loop);

	if (set->complained != 0 && now - set->complained < REST_TIME)
		return;
	set->complained = now;
	errno = error;
	log_write(LEVEL_ERROR, "accept() failed: %m");
}

static void rest(struct listeners *set, int error)
{
	complain(set, error);
	set->resting = true;
	if (error == EMFILE || error == ENFILE) {
		set->rests_for_descriptors++;
		give_spare(set);
	} else {
		set->rests_for_memory++;
	}
	watch_all(set);
	wheel_set(&set->loop->wheel, &set->retry, loop_now(set->loop) + REST_TIME);
}

void listeners_try_again(struct listeners *set)
{
	if (!set->resting || !take_spare(set))
		return;
	set->resting = false;
	deadline_cancel(&set->retry);
	watch_all(set);
}

static void on_rested(struct deadline *retry)
{
	struct listeners *set =
		(struct listeners *)((char *)retry - offsetof(struct listeners, retry));

	listeners_try_again(set);
	if (set->resting)
		wheel_set(&set->loop->wheel, &set->retry, loop_now(set->loop) + REST_TIME);
}

/* What accept(2) says of the one connection at the head of the queue, not of the socket. */
static bool is_fault_of_peer(int error)
{
	switch (error) {
	case ECONNABORTED:
	case EINTR:
	case EPERM: /* a firewall's rule */
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

enum accept_result { ACCEPTED, PASSED_OVER, NOBODY_WAITS };

static enum accept_result accept_one(struct listener *listener)
{
	struct listeners *set = listener->set;
	struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
	socklen_t length = sizeof(from);
	const int fd = accept4(
		listener->fd, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		set->accepted(set->context, fd, (const struct sockaddr *)&from, length,
			listener->is_unix);
		return ACCEPTED;
	}
	if (is_fault_of_peer(errno))
		return PASSED_OVER;
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		rest(set, errno);
	return NOBODY_WAITS;
}

/*
 * How many to accept now. Usually one: asking again only to hear that nobody waits would cost
 * each login a call, and who does wait makes the socket readable in the next turn. Where that
 * happened lately all who wait are taken: logins that are served together wake clients and servers
 * less often, and a wake-up costs several calls.
 */
static unsigned allowance(struct listener *listener)
{
	const uint64_t turn = listener->set->loop->turn;

	if (turn == listener->last_turn + 1)
		listener->eager = EAGER_TIMES;
	listener->last_turn = turn;
	return listener->eager > 0 ? ACCEPT_MOST : 1;
}

/* The callback may pause the set, but closes no listener: that is the daemon's, between events. */
static void accept_some(struct loop_task *task)
{
	struct listener *listener =
		(struct listener *)((char *)task - offsetof(struct listener, arrivals));
	const unsigned most = allowance(listener);
	unsigned taken = 0;

	while (taken < most && must_accept(listener->set) &&
		accept_one(listener) != NOBODY_WAITS)
		taken++;
	if (taken > 1)
		listener->eager = EAGER_TIMES;
	else if (listener->eager > 0)
		listener->eager--;
}

/* Accepted behind the other events: who takes the place of one that has just left finds it free. */
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

/* --- the set ---------------------------------------------------------------------------- */

static struct listener *listener_new(struct listeners *set, int fd)
{
	struct listener *listener = calloc(1, sizeof(*listener));

	if (!listener)
		return NULL;
	listener->set = set;
	listener->fd = fd;
	listener->last_turn = UINT64_MAX; /* in none yet */
	event_assign(&listener->event, set->loop->base, fd, EV_READ | EV_PERSIST,
		on_connections, listener);
	return listener;
}

static void listener_free(struct listener *listener)
{
	TAILQ_REMOVE(&listener->set->list, listener, entry);
	loop_forget(listener->set->loop, &listener->arrivals);
	event_del(&listener->event);
	close(listener->fd);
	free(listener);
}

/* Put a finished listener into the set and let it accept. */
static void start(struct listener *listener)
{
	char text[LISTENER_TEXT_SIZE];

	TAILQ_INSERT_TAIL(&listener->set->list, listener, entry);
	watch(listener);
	log_write(LEVEL_LOG, "listening on %s", listener_text(listener, text));
}

const struct listener *listeners_next(const struct listeners *set, const struct listener *after)
{
	return after ? TAILQ_NEXT(after, entry) : TAILQ_FIRST(&set->list);
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

/* --- TCP -------------------------------------------------------------------------------- */

static bool set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

/* Everything up to listen(); NULL, or the name of the call that failed, with errno. */
static const char *prepare_tcp(
	int fd, const struct addrinfo *at, const struct listen_options *options)
{
	if (!set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1))
		return "setsockopt(SO_REUSEADDR)";
	if (at->ai_family == AF_INET6 && !set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1))
		return "setsockopt(IPV6_V6ONLY)";
	if (options->reuseport && !set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1))
		return "setsockopt(SO_REUSEPORT)";
	/* Before listen(): the size of the buffers decides on the window scale of a connection. */
	if (!tcp_options_apply(fd, &options->tcp))
		log_write(
			LEVEL_WARNING, "cannot set all TCP options of a listening socket: %m");
	if (options->defer_accept &&
		!set_option(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, DEFER_SECONDS))
		return "setsockopt(TCP_DEFER_ACCEPT)";
	if (bind(fd, at->ai_addr, at->ai_addrlen) != 0)
		return "bind()";
	if (listen(fd, options->backlog) != 0)
		return "listen()";
	return NULL;
}

static void warn_address(const struct addrinfo *at, const char *call, int error)
{
	const struct address address = address_of(at->ai_addr, at->ai_addrlen);
	char text[ADDRESS_TEXT_SIZE];

	errno = error;
	log_write(LEVEL_WARNING, "cannot listen on %s: %s: %m", address_text(&address, text),
		call);
}

static bool open_tcp(
	struct listeners *set, const struct addrinfo *at, const struct listen_options *options)
{
	const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const char *failed = fd < 0 ? "socket()" : prepare_tcp(fd, at, options);
	struct listener *listener;

	if (!failed) {
		listener = listener_new(set, fd);
		if (listener) {
			listener->address = address_local(fd);
			start(listener);
			return true;
		}
		failed = "malloc()";
	}
	warn_address(at, failed, errno);
	if (fd >= 0)
		close(fd);
	return false;
}

/* All addresses of one item of the list; `opened` counts. */
static bool open_item(struct listeners *set, const char *item,
	const struct listen_options *options, unsigned *opened, char *why, size_t size)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	struct addrinfo *found;
	char port[16];
	int error;

	snprintf(port, sizeof(port), "%d", options->port);
	error = getaddrinfo(strcmp(item, "*") == 0 ? NULL : item, port, &hints, &found);
	if (error != 0) {
		snprintf(why, size, "getaddrinfo('%s', '%s') = %s [%d]", item, port,
			gai_strerror(error), error);
		return false;
	}
	for (const struct addrinfo *at = found; at; at = at->ai_next)
		*opened += open_tcp(set, at, options);
	freeaddrinfo(found);
	return true;
}

static bool open_addresses(
	struct listeners *set, const struct listen_options *options, char *why, size_t size)
{
	const char *list = options->addresses ? options->addresses : "";
	char item[ADDRESS_ITEM_SIZE];
	unsigned items = 0, opened = 0;
	bool whole;

	for (const char *at = list; text_next_item(&at, ", \t", item, sizeof(item), &whole);
		items++) {
		if (!whole) {
			snprintf(why, size, "failed to parse listen_addr list: %s", list);
			return false;
		}
		if (!open_item(set, item, options, &opened, why, size))
			return false;
	}
	if (items > 0 && opened == 0) {
		snprintf(why, size, "failed to listen on any address in listen_addr list: %s",
			list);
		return false;
	}
	return true;
}

void listeners_set_defer_accept(struct listeners *set, bool defer)
{
	struct listener *listener;

	TAILQ_FOREACH (listener, &set->list, entry)
		if (!listener->is_unix &&
			!set_option(listener->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT,
				defer ? DEFER_SECONDS : 0))
			log_write(LEVEL_WARNING, "setsockopt(TCP_DEFER_ACCEPT): %m");
}

void listeners_set_tcp_options(struct listeners *set, const struct tcp_options *options)
{
	struct listener *listener;

	TAILQ_FOREACH (listener, &set->list, entry)
		if (!listener->is_unix && !tcp_options_change(listener->fd, options))
			log_write(LEVEL_WARNING,
				"cannot change TCP options of a listening socket: %m");
}

/* --- Unix ------------------------------------------------------------------------------- */

static bool unix_path(char *out, size_t size, const char *dir, int port)
{
	const int length = snprintf(out, size, "%s/.s.PGSQL.%d", dir, port);

	return length > 0 && (size_t)length < size;
}

bool listener_unix_is_in_use(const char *unix_dir, int port)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct sockaddr_un address;
	socklen_t length;
	bool connected;
	int fd;

	if (!unix_dir || !*unix_dir || !unix_path(path, sizeof(path), unix_dir, port))
		return false;
	length = address_unix(&address, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	/* Its queue may be full (EAGAIN): somebody listens all the same. */
	connected =
		connect(fd, (const struct sockaddr *)&address, length) == 0 || errno == EAGAIN;
	close(fd);
	return connected;
}

static bool find_group(const char *name, gid_t *out)
{
	const struct group *found = getgrnam(name);
	long long number;

	if (found) {
		*out = found->gr_gid;
		return true;
	}
	if (!text_to_integer(name, &number) || number < 0 || number >= (gid_t)-1)
		return false;
	*out = (gid_t)number;
	return true;
}

/* Owner and mode of the socket's file, before anybody can connect. */
static bool dress_file(struct listener *listener, const struct listen_options *options)
{
	struct stat status;
	gid_t group;

	if (options->unix_group && *options->unix_group) {
		if (!find_group(options->unix_group, &group)) {
			log_write(LEVEL_ERROR, "unknown group in unix_socket_group: %s",
				options->unix_group);
			return false;
		}
		if (chown(listener->path, (uid_t)-1, group) != 0) {
			log_write(LEVEL_ERROR, "chown(%s): %m", listener->path);
			return false;
		}
	}
	if (chmod(listener->path, (mode_t)options->unix_mode) != 0 ||
		stat(listener->path, &status) != 0) {
		log_write(LEVEL_ERROR, "chmod(%s): %m", listener->path);
		return false;
	}
	listener->device = status.st_dev;
	listener->inode = status.st_ino;
	return true;
}

static bool is_abstract(const struct listener *listener)
{
	return listener->path[0] == '@';
}

static bool bind_unix(struct listener *listener, const struct listen_options *options)
{
	struct sockaddr_un address;
	const socklen_t length = address_unix(&address, listener->path);
	bool done;

	if (!is_abstract(listener))
		unlink(listener->path);
	if (bind(listener->fd, (const struct sockaddr *)&address, length) != 0) {
		log_write(LEVEL_ERROR, "cannot listen on unix:%s: bind(): %m", listener->path);
		return false;
	}
	done = is_abstract(listener) || dress_file(listener, options);
	if (done && listen(listener->fd, options->backlog) != 0) {
		log_write(
			LEVEL_ERROR, "cannot listen on unix:%s: listen(): %m", listener->path);
		done = false;
	}
	if (!done && !is_abstract(listener))
		unlink(listener->path);
	return done;
}

/* As other servers of this protocol mark a port that is theirs. */
static bool lock_file_exists(const struct listener *listener)
{
	char lock[sizeof(listener->path) + sizeof(".lock")];

	if (is_abstract(listener))
		return false;
	snprintf(lock, sizeof(lock), "%s.lock", listener->path);
	return access(lock, F_OK) == 0;
}

static bool open_unix(
	struct listeners *set, const struct listen_options *options, char *why, size_t size)
{
	struct listener *listener;
	int fd;

	if (!options->unix_dir || !*options->unix_dir)
		return true;
	snprintf(why, size, "failed to create unix socket");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		log_write(LEVEL_ERROR, "socket(): %m");
		return false;
	}
	listener = listener_new(set, fd);
	if (!listener)
		goto failed;
	listener->is_unix = true;
	listener->address =
		(struct address){.family = AF_UNIX, .port = (uint16_t)options->port};
	if (!unix_path(
		    listener->path, sizeof(listener->path), options->unix_dir, options->port)) {
		log_write(LEVEL_ERROR, "unix_socket_dir is too long: %s", options->unix_dir);
		goto failed;
	}
	if (lock_file_exists(listener)) {
		snprintf(why, size, "unix port %d is in use", options->port);
		goto failed;
	}
	if (!bind_unix(listener, options))
		goto failed;
	start(listener);
	return true;
failed:
	free(listener);
	close(fd);
	return false;
}

/* --- passed --------------------------------------------------------------------------- */

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

/* The path of a bound Unix socket; its port is the one that we would have. */
static void name_unix(struct listener *listener, const struct listen_options *options)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(address);
	size_t size;

	listener->is_unix = true;
	listener->address =
		(struct address){.family = AF_UNIX, .port = (uint16_t)options->port};
	if (getsockname(listener->fd, (struct sockaddr *)&address, &length) != 0)
		return;
	size = length - offsetof(struct sockaddr_un, sun_path);
	if (size == 0 || size > sizeof(listener->path))
		return;
	memcpy(listener->path, address.sun_path, size);
	if (listener->path[0] == '\0')
		listener->path[0] = '@'; /* the abstract name space, without a final zero */
	listener->path[size < sizeof(listener->path) ? size : size - 1] = '\0';
}

static bool dress_passed_tcp(struct listener *listener, const struct listen_options *options)
{
	listener->address = address_local(listener->fd);
	if (!tcp_options_apply(listener->fd, &options->tcp))
		log_write(
			LEVEL_WARNING, "cannot set all TCP options of a listening socket: %m");
	return !options->defer_accept ||
		set_option(listener->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, DEFER_SECONDS);
}

/* What bind() has made for the process before us is ours to remove. */
static void inherit_file(struct listener *listener)
{
	char text[LISTENER_TEXT_SIZE];
	struct stat status;

	log_write(LEVEL_LOG, "got pooler socket: %s", listener_text(listener, text));
	if (!listener->is_unix || stat(listener->path, &status) != 0)
		return;
	listener->device = status.st_dev;
	listener->inode = status.st_ino;
}

static bool take_passed(struct listeners *set, int fd, const struct listen_options *options)
{
	const int family = listener_family(fd);
	const int flags = fcntl(fd, F_GETFL);
	struct listener *listener;

	if ((family != AF_UNIX && family != AF_INET && family != AF_INET6) || flags < 0 ||
		fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
		fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		return false;
	listener = listener_new(set, fd);
	if (!listener)
		return false;
	listener->is_passed = !options->inherited;
	if (family == AF_UNIX)
		name_unix(listener, options);
	else if (!dress_passed_tcp(listener, options))
		log_write(LEVEL_WARNING, "setsockopt(TCP_DEFER_ACCEPT): %m");
	if (options->inherited)
		inherit_file(listener);
	else
		log_write(LEVEL_LOG, "socket passed from service manager (fd %d)", fd);
	start(listener);
	return true;
}

static bool take_all_passed(
	struct listeners *set, const struct listen_options *options, char *why, size_t size)
{
	for (unsigned i = 0; i < options->passed_count; i++) {
		if (!take_passed(set, options->passed[i], options)) {
			snprintf(why, size,
				"socket passed from service manager (fd %d) is no stream socket that "
				"listens",
				options->passed[i]);
			return false;
		}
	}
	return true;
}

/* --- the end of one --------------------------------------------------------------------- */

/* Another process may have put its own socket there since. */
static void unlink_if_ours(const struct listener *listener)
{
	struct stat status;

	if (!listener->is_unix || listener->is_passed || is_abstract(listener))
		return;
	if (lstat(listener->path, &status) == 0 && status.st_dev == listener->device &&
		status.st_ino == listener->inode)
		unlink(listener->path);
}

/* --- opening and closing the whole set --------------------------------------------------- */

static bool open_all(
	struct listeners *set, const struct listen_options *options, char *why, size_t size)
{
	if (options->passed_count > 0)
		return take_all_passed(set, options, why, size);
	if (!open_addresses(set, options, why, size) || !open_unix(set, options, why, size))
		return false;
	if (TAILQ_EMPTY(&set->list)) {
		snprintf(why, size, "nowhere to listen on");
		return false;
	}
	return true;
}

bool listeners_open(struct listeners *set, struct loop *loop,
	const struct listen_options *options, listener_function *accepted, void *context,
	char *why, size_t size)
{
	*set = (struct listeners){
		.loop = loop,
		.accepted = accepted,
		.context = context,
		.retry = {.expire = on_rested},
		.spare = -1,
	};
	TAILQ_INIT(&set->list);
	if (!take_spare(set)) {
		snprintf(why, size, "cannot open /dev/null: %s", strerror(errno));
		return false;
	}
	if (open_all(set, options, why, size))
		return true;
	/* A file that was inherited may still be needed by those who made it. */
	listeners_close_all(set, !options->inherited);
	return false;
}

void listeners_close_tcp(struct listeners *set)
{
	struct listener *listener, *next;

	TAILQ_FOREACH_SAFE (listener, &set->list, entry, next)
		if (!listener->is_unix)
			listener_free(listener);
}

void listeners_close_all(struct listeners *set, bool unlink_file)
{
	struct listener *listener;

	while ((listener = TAILQ_FIRST(&set->list)) != NULL) {
		if (unlink_file)
			unlink_if_ours(listener);
		listener_free(listener);
	}
	give_spare(set);
	wheel_remove(&set->loop->wheel, &set->retry);
	set->resting = false;
}
