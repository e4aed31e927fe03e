/* SPDX-License-Identifier: ISC */
/* Where an HTTP server listens. */
#include <errno.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "net/http/http_parts.h"
#include "net/listener.h"

enum {
	LISTEN_BACKLOG = 128,
	ADDRESS_ITEM_SIZE = 128,
};

void http_accept_more(struct http *http)
{
	for (unsigned i = 0; i < http->listener_count; i++)
		evconnlistener_enable(http->listeners[i]);
}

void http_rest(struct http *http)
{
	for (unsigned i = 0; i < http->listener_count; i++)
		evconnlistener_disable(http->listeners[i]);
}

/* Without a descriptor the listener stays readable: disable it, or the loop would spin. */
static void on_accept_failed(struct evconnlistener *listener, void *evhttp)
{
	(void)evhttp;
	evconnlistener_disable(listener);
}

static bool take(struct http *http, struct evconnlistener *listener)
{
	if (!listener)
		return false;
	if (!evhttp_bind_listener(http->evhttp, listener)) {
		evconnlistener_free(listener);
		return false;
	}
	evconnlistener_set_error_cb(listener, on_accept_failed);
	http->listeners[http->listener_count++] = listener;
	return true;
}

static bool listen_on(struct http *http, const struct addrinfo *at)
{
	const unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC |
		LEV_OPT_REUSEABLE |
		(at->ai_family == AF_INET6 ? (unsigned)LEV_OPT_BIND_IPV6ONLY : 0);

	if (http->listener_count == HTTP_LISTENERS) {
		errno = E2BIG;
		return false;
	}
	return take(http,
		evconnlistener_new_bind(http->loop->base, NULL, NULL, flags, LISTEN_BACKLOG,
			at->ai_addr, (int)at->ai_addrlen));
}

/* The backlog stays as the process that made the socket has set it. */
static bool listen_on_socket(struct http *http, char *why, size_t size)
{
	const int fd = http->options.socket;

	if (listener_family(fd) == AF_UNSPEC) {
		snprintf(why, size, "the socket that was passed does not listen");
		return false;
	}
	if (evutil_make_socket_nonblocking(fd) == 0 &&
		evutil_make_socket_closeonexec(fd) == 0 &&
		take(http,
			evconnlistener_new(
				http->loop->base, NULL, NULL, LEV_OPT_CLOSE_ON_FREE, 0, fd)))
		return true;
	snprintf(why, size, "the socket that was passed: %s", strerror(errno));
	return false;
}

/*
 * Open all addresses of one item. One that works is enough: `*` without IPv6 has one that
 * fails.
 */
static bool open_item(struct http *http, const char *item, char *why, size_t size)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
	};
	const bool is_all = strcmp(item, "*") == 0;
	struct addrinfo *found;
	unsigned opened = 0;
	char port[16];
	int error;

	snprintf(port, sizeof(port), "%d", http->options.port);
	error = getaddrinfo(is_all ? NULL : item, port, &hints, &found);
	if (error != 0) {
		snprintf(why, size, "'%s' is no numeric address", item);
		return false;
	}
	for (const struct addrinfo *at = found; at; at = at->ai_next)
		opened += listen_on(http, at);
	if (opened == 0)
		snprintf(why, size, "%s port %s: %s", item, port, strerror(errno));
	freeaddrinfo(found);
	return opened > 0;
}

bool http_listen(struct http *http, char *why, size_t size)
{
	char item[ADDRESS_ITEM_SIZE];

	if (http->options.socket >= 0)
		return listen_on_socket(http, why, size);
	for (const char *at = http->options.addresses;
		text_next_item(&at, TEXT_LIST_SEPARATORS, item, sizeof(item), NULL);) {
		if (!open_item(http, item, why, size))
			return false;
	}
	if (http->listener_count == 0)
		snprintf(why, size, "no address to listen on");
	return http->listener_count > 0;
}
