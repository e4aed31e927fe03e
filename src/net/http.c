/* SPDX-License-Identifier: ISC */
#include "net/http.h"

#include <bsd/sys/queue.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "net/listener.h"

enum {
	LISTENERS_MOST = 16,
	LISTEN_BACKLOG = 128,
	ADDRESS_ITEM_SIZE = 128,
	/*
	 * Most unparsed input; above HTTP_HEADERS_SIZE, so that evhttp notices headers too
	 * long.
	 */
	INPUT_MOST = 2 * HTTP_HEADERS_SIZE,
};

struct connection {
	TAILQ_ENTRY(connection) entry;
	struct http *http;
	struct bufferevent *stream;
	struct evhttp_connection *evhttp; /* NULL until the end of the turn that accepted it */
	struct deadline deadline;
	bool has_asked; /* its request is complete */
};

TAILQ_HEAD(connection_list, connection);

struct http_request {
	struct http *http;
	struct evhttp_request *evhttp; /* outlives its connection */
	const char *path;
};

struct http {
	struct loop *loop;
	struct http_options options;
	struct evhttp *evhttp;
	struct evconnlistener *listeners[LISTENERS_MOST];
	unsigned listener_count;
	struct connection_list open; /* oldest first */
	struct connection_list unused;
	struct connection *accepted; /* in this turn, evhttp connection not known yet */
	struct loop_task adoption;
	unsigned requests; /* without a response */
	struct connection connections[HTTP_CONNECTIONS];
};

/* --- connections -------------------------------------------------------------------------- */

static void forget(struct connection *connection)
{
	struct http *http = connection->http;

	wheel_remove(&http->loop->wheel, &connection->deadline);
	TAILQ_REMOVE(&http->open, connection, entry);
	TAILQ_INSERT_HEAD(&http->unused, connection, entry);
}

/* evhttp is about to free the connection. */
static void on_closed(struct evhttp_connection *evhttp, void *argument)
{
	(void)evhttp;
	forget(argument);
}

/*
 * Pretend that the socket has failed: evhttp then closes it without a response, and leaves a
 * request without a response to us.
 */
static void cut(struct connection *connection)
{
	bufferevent_trigger_event(connection->stream, BEV_EVENT_ERROR | BEV_EVENT_READING, 0);
}

static void on_time_over(struct deadline *deadline)
{
	cut((struct connection *)((char *)deadline - offsetof(struct connection, deadline)));
}

static void make_room(struct http *http)
{
	struct connection *connection;

	TAILQ_FOREACH (connection, &http->open, entry) {
		if (!connection->has_asked)
			break;
	}
	cut(connection ? connection : TAILQ_FIRST(&http->open));
}

static void accept_more(struct http *http)
{
	for (unsigned i = 0; i < http->listener_count; i++)
		evconnlistener_enable(http->listeners[i]);
}

/*
 * evhttp reports a connection only when its request is complete, which may never happen. Before
 * that, the evhttp connection can be found as the argument of the callbacks that evhttp sets on
 * our bufferevent, just after on_accepted() has returned it.
 */
static void adopt(struct http *http)
{
	struct connection *connection = http->accepted;
	bufferevent_data_cb on_read;
	void *evhttp;

	http->accepted = NULL;
	if (!connection)
		return;
	bufferevent_getcb(connection->stream, &on_read, NULL, NULL, &evhttp);
	if (on_read) {
		connection->evhttp = evhttp;
		evhttp_connection_set_closecb(connection->evhttp, on_closed, connection);
	} else {
		forget(connection); /* evhttp was out of memory */
	}
	bufferevent_decref(connection->stream);
}

static void on_adoption(struct loop_task *task)
{
	struct http *http = (struct http *)((char *)task - offsetof(struct http, adoption));

	adopt(http);
	accept_more(http);
}

/*
 * evhttp has accepted a connection and asks for a bufferevent: its only callback at this point.
 * Disable the listeners until the end of the turn, or libevent would accept all connections
 * that wait at once.
 */
static struct bufferevent *on_accepted(struct event_base *base, void *argument)
{
	struct http *http = argument;
	struct bufferevent *stream = bufferevent_socket_new(base, -1, 0);
	struct connection *connection;

	adopt(http);
	for (unsigned i = 0; i < http->listener_count; i++)
		evconnlistener_disable(http->listeners[i]);
	loop_defer_arrivals(http->loop, &http->adoption, on_adoption);
	if (TAILQ_EMPTY(&http->unused))
		make_room(http);
	connection = TAILQ_FIRST(&http->unused);
	if (!stream || !connection)
		return stream;
	TAILQ_REMOVE(&http->unused, connection, entry);
	*connection = (struct connection){
		.http = http, .stream = stream, .deadline.expire = on_time_over};
	TAILQ_INSERT_TAIL(&http->open, connection, entry);
	wheel_set(&http->loop->wheel, &connection->deadline, loop_now(http->loop) + HTTP_TIME);
	/* Limit the input: evhttp reads on, without using it, until the response is sent. */
	bufferevent_setwatermark(stream, EV_READ, 0, INPUT_MOST);
	/* adopt() needs the bufferevent even if evhttp frees it. */
	bufferevent_incref(stream);
	http->accepted = connection;
	return stream;
}

/* Without a descriptor the listener stays readable: disable it, or the loop would spin. */
static void on_accept_failed(struct evconnlistener *listener, void *evhttp)
{
	(void)evhttp;
	evconnlistener_disable(listener);
}

void http_upkeep(struct http *http)
{
	if (!http->accepted)
		accept_more(http);
}

unsigned http_connections(const struct http *http)
{
	const struct connection *connection;
	unsigned count = 0;

	TAILQ_FOREACH (connection, &http->open, entry)
		count++;
	return count;
}

/* --- requests ----------------------------------------------------------------------------- */

/*
 * Read no more from the connection of this request. evhttp closes a connection at the end of
 * its input, also if the client has only ended its requests (shutdown(2)) and waits for the
 * response; and it reads on when it sends. A client that has disconnected is noticed by the
 * failing write, or at the end of HTTP_TIME.
 */
static void stop_reading(struct evhttp_connection *from)
{
	bufferevent_disable(evhttp_connection_get_bufferevent(from), EV_READ);
}

static void mark_as_asked(struct http *http, struct evhttp_request *evhttp)
{
	const struct evhttp_connection *from = evhttp_request_get_connection(evhttp);
	struct connection *connection;

	TAILQ_FOREACH (connection, &http->open, entry) {
		if (connection->evhttp == from)
			connection->has_asked = true;
	}
}

static const char *path_of(const struct evhttp_request *evhttp)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(evhttp));

	return path && path[0] != '\0' ? path : "/";
}

static void on_request(struct evhttp_request *evhttp, void *argument)
{
	const enum evhttp_cmd_type method = evhttp_request_get_command(evhttp);
	struct http *http = argument;
	struct http_request *request = malloc(sizeof(*request));

	mark_as_asked(http, evhttp);
	stop_reading(evhttp_request_get_connection(evhttp));
	if (!request) {
		evhttp_send_error(evhttp, HTTP_SERVUNAVAIL, NULL);
		return;
	}
	*request = (struct http_request){http, evhttp, path_of(evhttp)};
	http->requests++;
	if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
		evhttp_add_header(
			evhttp_request_get_output_headers(evhttp), "Allow", "GET, HEAD");
		http_reply_text(request, HTTP_BADMETHOD, "text/plain", "GET and HEAD only\n");
	} else if (http->requests > HTTP_REQUESTS) {
		http_reply_text(request, HTTP_SERVUNAVAIL, "text/plain", "too many requests\n");
	} else {
		http->options.asked(http->options.context, request);
	}
}

const char *http_path(const struct http_request *request)
{
	return request->path;
}

const char *http_header(const struct http_request *request, const char *name)
{
	const char *value =
		evhttp_find_header(evhttp_request_get_input_headers(request->evhttp), name);

	return value ? value : "";
}

static void on_sent(const void *data, size_t length, void *argument)
{
	struct http_answer *answer = argument;

	(void)data;
	(void)length;
	if (answer->release)
		answer->release(answer->owner);
	free(answer);
}

/*
 * Add the body without copying it. Returns false when out of memory; then it is not released.
 */
static bool add_body(struct evbuffer *out, const struct http_answer *answer)
{
	struct http_answer *copy = malloc(sizeof(*copy));

	if (!copy)
		return false;
	*copy = *answer;
	if (evbuffer_add_reference(out, answer->body, answer->length, on_sent, copy) == 0)
		return true;
	free(copy);
	return false;
}

static void add_headers(struct evhttp_request *evhttp, const struct http_answer *answer)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(evhttp);
	char length[24];

	snprintf(length, sizeof(length), "%zu", answer->length);
	evhttp_add_header(headers, "Content-Type", answer->type);
	evhttp_add_header(headers, "Content-Length", length);
	evhttp_add_header(headers, "Connection", "close");
	evhttp_add_header(headers, "Cache-Control", "no-store");
}

void http_reply(struct http_request *request, const struct http_answer *answer)
{
	struct evhttp_request *evhttp = request->evhttp;
	/* NULL when it is closed; evhttp then frees the request when it gets the response. */
	struct evhttp_connection *from = evhttp_request_get_connection(evhttp);
	struct http *http = request->http;
	const bool wants_body = evhttp_request_get_command(evhttp) != EVHTTP_REQ_HEAD;
	struct evbuffer *body = wants_body && answer->length > 0 ? evbuffer_new() : NULL;
	const bool taken = body && add_body(body, answer);

	http->options.replied(http->options.context, request->path, answer->code);
	add_headers(evhttp, answer);
	if (wants_body && answer->length > 0 && !taken)
		evhttp_send_error(evhttp, HTTP_SERVUNAVAIL, NULL);
	else
		evhttp_send_reply(evhttp, answer->code, NULL, body);
	if (from)
		stop_reading(from);
	if (body)
		evbuffer_free(body);
	if (!taken && answer->release)
		answer->release(answer->owner);
	http->requests--;
	free(request);
}

void http_reply_text(struct http_request *request, int code, const char *type, const char *text)
{
	char *copy = strdup(text);
	const struct http_answer answer = {
		.code = copy ? code : HTTP_SERVUNAVAIL,
		.type = type,
		.body = copy,
		.length = copy ? strlen(copy) : 0,
		.release = free,
		.owner = copy,
	};

	http_reply(request, &answer);
}

/* --- listening ---------------------------------------------------------------------------- */

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

	if (http->listener_count == LISTENERS_MOST) {
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

static bool open_all(struct http *http, char *why, size_t size)
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

static void set_limits(struct http *http)
{
	const struct timeval time = {.tv_sec = HTTP_TIME / USEC_PER_SEC};

	evhttp_set_timeout_tv(http->evhttp, &time);
	evhttp_set_max_headers_size(http->evhttp, HTTP_HEADERS_SIZE);
	evhttp_set_max_body_size(http->evhttp, 0);
	/* Other methods get a response from on_request(), which names the allowed ones. */
	evhttp_set_allowed_methods(http->evhttp,
		EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
			EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
			EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
	evhttp_set_bevcb(http->evhttp, on_accepted, http);
	evhttp_set_gencb(http->evhttp, on_request, http);
}

struct http *http_open(
	struct loop *loop, const struct http_options *options, char *why, size_t size)
{
	struct http *http = calloc(1, sizeof(*http));

	snprintf(why, size, "no memory");
	if (!http)
		return NULL;
	http->loop = loop;
	http->options = *options;
	TAILQ_INIT(&http->open);
	TAILQ_INIT(&http->unused);
	for (unsigned i = 0; i < HTTP_CONNECTIONS; i++)
		TAILQ_INSERT_TAIL(&http->unused, &http->connections[i], entry);
	http->evhttp = evhttp_new(loop->base);
	if (http->evhttp) {
		set_limits(http);
		if (open_all(http, why, size)) {
			http->options.addresses = NULL;
			return http;
		}
		evhttp_free(http->evhttp);
	}
	free(http);
	return NULL;
}

void http_close(struct http *http)
{
	if (!http)
		return;
	CHECK(http->requests == 0);
	adopt(http);
	loop_forget(http->loop, &http->adoption);
	/* Closes the connections and calls on_closed() for each. */
	evhttp_free(http->evhttp);
	free(http);
}
