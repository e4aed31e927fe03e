/* SPDX-License-Identifier: ISC */
/*
 * A small HTTP server on the event loop, for metrics and health checks: libevent's evhttp, with
 * limits that evhttp does not have. The content of the pages comes from the callbacks.
 *
 * Clients are not trusted. At most HTTP_CONNECTIONS connections are open; a further one closes
 * the oldest connection that has sent no complete request, or else the oldest one, so that
 * silent connections cannot block the others. A connection is closed HTTP_TIME after it was
 * accepted, in any state. A request has a request line and headers of at most HTTP_HEADERS_SIZE
 * bytes together, and no body; requests other than GET and HEAD are answered here. A client may
 * end its side of the connection behind its request. Each response closes its connection.
 *
 * With TLS the handshake counts for HTTP_TIME too. A client that does not speak TLS then is
 * disconnected without a response.
 */
#ifndef PGUSHER_NET_HTTP_HTTP_H
#define PGUSHER_NET_HTTP_HTTP_H

#include "net/address.h"
#include "net/loop.h"
#include "net/tls_context.h"

enum {
	HTTP_CONNECTIONS = 32,
	HTTP_HEADERS_SIZE = 8192,
	/* Most requests without a response, including those of connections that are closed. */
	HTTP_REQUESTS = 2 * HTTP_CONNECTIONS,
};

#define HTTP_TIME (5 * USEC_PER_SEC)

struct http;
struct http_request;

/* A header; the texts are constant. */
struct http_header {
	const char *name, *value;
};

struct http_options {
	const char *addresses; /* numeric, separated by commas or blanks; `*`: all. Only read */
	int port;
	/* A listening socket to use instead, owned by the server after success; -1: none. */
	int socket;
	const struct http_header
		*headers; /* of each response; the last one has no name. NULL: none */
	/*
	 * Asked for each new connection: returns whether it has to be encrypted, and sets the
	 * context, of which the connection takes a reference. NULL there: the connection is closed.
	 * The function may be NULL: no connection is encrypted.
	 */
	bool (*wants_tls)(void *context, struct tls_context **out);
	/*
	 * A request has arrived. It is valid until http_reply(), which may be called in a later
	 * turn.
	 */
	void (*asked)(void *context, struct http_request *request);
	/* Called by http_reply(); not for a request that libevent refuses by itself. */
	void (*replied)(void *context, const char *path, int code);
	void *context;
};

/*
 * A response. The body must stay valid until release(owner), which is called exactly once, from
 * inside http_reply() or later. Body and release may be NULL.
 */
struct http_answer {
	int code;
	const char *type; /* Content-Type */
	const char *body;
	size_t length;
	void (*release)(void *owner);
	void *owner;
};

/*
 * Listen. Returns NULL with the reason in `why` on failure; no address is open then. Does not
 * block.
 */
struct http *http_open(
	struct loop *loop, const struct http_options *options, char *why, size_t size);

/*
 * Close all connections, stop listening and free the server. Each request must have been
 * answered before. NULL is allowed.
 */
void http_close(struct http *http);

/* Accept again after descriptors were short. To be called a few times a second. */
void http_upkeep(struct http *http);

/* Returns the number of open connections. */
unsigned http_connections(const struct http *http);

/* Returns the path of the request without its query string; owned by the request. */
const char *http_path(const struct http_request *request);

/* Returns the value of a header, "" if there is none; owned by the request. */
const char *http_header(const struct http_request *request, const char *name);

/* Overwrite the value of a header, if there is one: it was a password. */
void http_wipe_header(struct http_request *request, const char *name);

/* Returns the address of the client; AF_UNSPEC if the connection is closed. */
struct address http_client(const struct http_request *request);

/* Add a header to the response to come. */
void http_add_header(struct http_request *request, const char *name, const char *value);

/*
 * Send the response and free the request. Allowed when the client has disconnected meanwhile.
 */
void http_reply(struct http_request *request, const struct http_answer *answer);

/* As http_reply(), with a text as the body, which is copied. */
void http_reply_text(
	struct http_request *request, int code, const char *type, const char *text);

#endif
