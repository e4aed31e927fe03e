/* SPDX-License-Identifier: ISC */
/* The state of an HTTP server; private to the files of net/http. */
#ifndef PGUSHER_NET_HTTP_HTTP_PARTS_H
#define PGUSHER_NET_HTTP_HTTP_PARTS_H

#include <bsd/sys/queue.h>
#include <event2/bufferevent.h>

#include "net/http/http.h"

enum { HTTP_LISTENERS = 16 };

struct http_connection {
	TAILQ_ENTRY(http_connection) entry;
	struct http *http;
	struct bufferevent *stream;
	struct evhttp_connection *evhttp; /* NULL until the end of the turn that accepted it */
	struct deadline deadline;
	struct tls_context *tls; /* a reference; NULL: it is not encrypted */
	bool has_asked; /* its request is complete */
	bool refused; /* it should be encrypted, and cannot be: it is closed when it is adopted */
};

TAILQ_HEAD(http_connection_list, http_connection);

struct http {
	struct loop *loop;
	struct http_options options;
	struct evhttp *evhttp;
	struct evconnlistener *listeners[HTTP_LISTENERS];
	unsigned listener_count;
	struct http_connection_list open; /* oldest first */
	struct http_connection_list unused;
	struct http_connection *accepted; /* in this turn, evhttp connection not known yet */
	struct loop_task adoption;
	unsigned requests; /* without a response */
	struct http_connection connections[HTTP_CONNECTIONS];
};

/* --- src/net/http/http_listening.c -------------------------------------------------------- */

/*
 * Listen at the addresses of the options, or on their socket. Returns false with the reason in
 * `why` on failure; evhttp then closes what was opened.
 */
bool http_listen(struct http *http, char *why, size_t size);

/* Stop accepting, and accept again. */
void http_rest(struct http *http);
void http_accept_more(struct http *http);

/* --- src/net/http/http_tls.c -------------------------------------------------------------- */

/*
 * Returns a bufferevent without a socket that is the TLS server; it owns the socket that it
 * gets. NULL when out of memory.
 */
struct bufferevent *http_tls_new(struct event_base *base, const struct tls_context *context);

/* Tell the client that nothing follows (close_notify), if the handshake was done. */
void http_tls_end(struct bufferevent *stream);

#endif
