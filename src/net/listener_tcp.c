/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "net/listener_parts.h"

enum {
	/* TCP_DEFER_ACCEPT: seconds until a connection without any bytes is accepted. */
	DEFER_SECONDS = 1,
	ADDRESS_ITEM_SIZE = 256,
};

static bool set_option(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

/*
 * Set options, bind and listen. Returns NULL, or the name of the call that failed, with errno.
 */
static const char *prepare_tcp(
	int fd, const struct addrinfo *at, const struct listen_options *options)
{
	if (!set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1))
		return "setsockopt(SO_REUSEADDR)";
	if (at->ai_family == AF_INET6 && !set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1))
		return "setsockopt(IPV6_V6ONLY)";
	if (options->reuseport && !set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1))
		return "setsockopt(SO_REUSEPORT)";
	/* Before listen(): the buffer sizes determine the window scale of a connection. */
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

/* Go on with the socket of an earlier process, in which clients may wait already. */
static bool open_kept(struct listeners *set, int fd, const struct listen_options *options)
{
	struct listener *listener = listener_new(set, fd);
	char text[LISTENER_TEXT_SIZE];

	if (!listener) {
		close(fd);
		return false;
	}
	if (!listener_prepare_passed_tcp(listener, options))
		log_write(LEVEL_WARNING, "setsockopt(TCP_DEFER_ACCEPT): %m");
	log_write(LEVEL_LOG, "service manager has kept %s", listener_text(listener, text));
	listener_start(listener);
	return true;
}

static bool open_tcp(
	struct listeners *set, const struct addrinfo *at, const struct listen_options *options)
{
	const int kept = listener_take_kept_tcp(options, at->ai_addr);
	struct listener *listener;
	const char *failed;
	int fd;

	if (kept >= 0)
		return open_kept(set, kept, options);
	fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	failed = fd < 0 ? "socket()" : prepare_tcp(fd, at, options);
	if (failed && fd >= 0 && errno == EADDRINUSE &&
		listener_end_kept_in_the_way(options, at->ai_addr, at->ai_addrlen))
		failed = prepare_tcp(fd, at, options);
	if (!failed) {
		listener = listener_new(set, fd);
		if (listener) {
			listener->address = address_local(fd);
			listener_start(listener);
			return true;
		}
		failed = "malloc()";
	}
	warn_address(at, failed, errno);
	if (fd >= 0)
		close(fd);
	return false;
}

/* Open all addresses of one item of the list, and count them in `opened`. */
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

bool listeners_open_tcp(
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

bool listener_prepare_passed_tcp(
	struct listener *listener, const struct listen_options *options)
{
	listener->address = address_local(listener->fd);
	if (!tcp_options_apply(listener->fd, &options->tcp))
		log_write(
			LEVEL_WARNING, "cannot set all TCP options of a listening socket: %m");
	return !options->defer_accept ||
		set_option(listener->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, DEFER_SECONDS);
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
