/* SPDX-License-Identifier: ISC */
/*
 * A small HTTP server on the loop, for pages about ourselves: libevent's evhttp, and the limits
 * that evhttp does not have. It knows nothing of what the pages say.
 *
 * Whoever connects is a stranger. At most HTTP_CONNECTIONS sockets are open; one more cuts the
 * oldest that has not asked yet, else the oldest, so that a crowd of silent ones keeps nobody
 * out. HTTP_TIME after it was accepted a connection is cut, whatever it is doing. A request is a
 * line and headers of HTTP_HEADERS_SIZE together, and no body; only GET and HEAD are handed on.
 * Every answer ends its connection.
 */
#ifndef PGUSHER_NET_HTTP_H
#define PGUSHER_NET_HTTP_H

#include "net/loop.h"

enum {
	HTTP_CONNECTIONS = 32,
	HTTP_HEADERS_SIZE = 8192,
	/* Requests that wait for their answer; those of connections that were cut count too. */
	HTTP_REQUESTS = 2 * HTTP_CONNECTIONS,
};

#define HTTP_TIME (5 * USEC_PER_SEC)

struct http;
struct http_request;

struct http_options {
	const char *addresses; /* numeric ones separated by commas or blanks; `*`: all */
	int port;
	int socket; /* one that listens already, ours from now on, in place of these; -1: none */
	/* A request came. It stays valid until http_reply(), which may come in a later turn. */
	void (*asked)(void *context, struct http_request *request);
	/* An answer is being sent; not called for what libevent refuses by itself. */
	void (*replied)(void *context, const char *path, int code);
	void *context;
};

/* What is sent. The body must stay until `release`, which is called exactly once; both may be NULL. */
struct http_answer {
	int code;
	const char *type; /* of the content */
	const char *body;
	size_t length;
	void (*release)(void *owner);
	void *owner;
};

/* Listen. NULL, with the reason in `why`, when that fails: nothing is open then. Never blocks. */
struct http *http_open(
	struct loop *loop, const struct http_options *options, char *why, size_t size);

/* Cut everybody and stop listening; every request must have been answered. NULL is allowed. */
void http_close(struct http *http);

/* Accept again, after a while without descriptors: to be called a few times a second. */
void http_upkeep(struct http *http);

/* Open connections. */
unsigned http_connections(const struct http *http);

/* The path that is asked for, without what follows a question mark. */
const char *http_path(const struct http_request *request);

/* A header's value; "" if there is none. */
const char *http_header(const struct http_request *request, const char *name);

/* Answer the request, which is gone afterwards. Does no harm if whoever asked has left. */
void http_reply(struct http_request *request, const struct http_answer *answer);

/* The same with a text that is copied. */
void http_reply_text(
	struct http_request *request, int code, const char *type, const char *text);

#endif
