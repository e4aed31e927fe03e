/* SPDX-License-Identifier: ISC */
#include "net/http/http.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/check.h"
#include "net/http/http_parts.h"

enum {
	/*
	 * Most unparsed input; above HTTP_HEADERS_SIZE, so that evhttp notices headers too
	 * long.
	 */
	INPUT_MOST = 2 * HTTP_HEADERS_SIZE,
};

struct http_request {
	struct http *http;
	struct evhttp_request *evhttp; /* outlives its connection */
	const char *path;
};

/* --- connections -------------------------------------------------------------------------- */

static void forget(struct http_connection *connection)
{
	struct http *http = connection->http;

	wheel_remove(&http->loop->wheel, &connection->deadline);
	tls_context_unref(connection->tls);
	TAILQ_REMOVE(&http->open, connection, entry);
	TAILQ_INSERT_HEAD(&http->unused, connection, entry);
}

/* evhttp is about to free the connection. */
static void on_closed(struct evhttp_connection *evhttp, void *argument)
{
	struct http_connection *connection = argument;

	(void)evhttp;
	if (connection->tls)
		http_tls_end(connection->stream);
	forget(connection);
}

/*
 * Pretend that the socket has failed: evhttp then closes it without a response, and leaves a
 * request without a response to us.
 */
static void cut(struct http_connection *connection)
{
	bufferevent_trigger_event(connection->stream, BEV_EVENT_ERROR | BEV_EVENT_READING, 0);
}

static void on_time_over(struct deadline *deadline)
{
	cut((struct http_connection *)((char *)deadline -
		offsetof(struct http_connection, deadline)));
}

static void make_room(struct http *http)
{
	struct http_connection *connection;

	TAILQ_FOREACH (connection, &http->open, entry) {
		if (!connection->has_asked)
			break;
	}
	cut(connection ? connection : TAILQ_FIRST(&http->open));
}

/*
 * evhttp reports a connection only when its request is complete, which may never happen. Before
 * that, the evhttp connection can be found as the argument of the callbacks that evhttp sets on
 * our bufferevent, just after on_accepted() has returned it.
 */
static void adopt(struct http *http)
{
	struct http_connection *connection = http->accepted;
	struct bufferevent *stream = connection ? connection->stream : NULL;
	bufferevent_data_cb on_read;
	void *evhttp;

	http->accepted = NULL;
	if (!connection)
		return;
	bufferevent_getcb(stream, &on_read, NULL, NULL, &evhttp);
	if (on_read) {
		connection->evhttp = evhttp;
		evhttp_connection_set_closecb(connection->evhttp, on_closed, connection);
		if (connection->refused)
			cut(connection);
	} else {
		forget(connection); /* evhttp was out of memory */
	}
	bufferevent_decref(stream);
}

static void on_adoption(struct loop_task *task)
{
	struct http *http = (struct http *)((char *)task - offsetof(struct http, adoption));

	adopt(http);
	http_accept_more(http);
}

struct http_transport {
	struct bufferevent *stream; /* NULL: no memory */
	struct tls_context *tls; /* a reference; NULL: not encrypted */
	bool refused;
};

/* A connection that should be encrypted, and cannot be, gets a stream only to be closed. */
static struct http_transport new_transport(struct http *http, struct event_base *base)
{
	const struct http_options *options = &http->options;
	struct http_transport transport = {0};
	struct tls_context *tls = NULL;

	if (options->wants_tls && options->wants_tls(options->context, &tls)) {
		transport.stream = tls ? http_tls_new(base, tls) : NULL;
		transport.refused = !transport.stream;
		if (transport.stream)
			transport.tls = tls_context_ref(tls);
	}
	if (!transport.stream)
		transport.stream = bufferevent_socket_new(base, -1, 0);
	return transport;
}

/*
 * evhttp has accepted a connection and asks for a bufferevent: its only callback at this point.
 * Disable the listeners until the end of the turn, or libevent would accept all connections
 * that wait at once.
 */
static struct bufferevent *on_accepted(struct event_base *base, void *argument)
{
	struct http *http = argument;
	const struct http_transport transport = new_transport(http, base);
	struct bufferevent *stream = transport.stream;
	struct http_connection *connection;

	adopt(http);
	http_rest(http);
	loop_defer_arrivals(http->loop, &http->adoption, on_adoption);
	if (TAILQ_EMPTY(&http->unused))
		make_room(http);
	connection = TAILQ_FIRST(&http->unused);
	if (!stream || !connection) {
		tls_context_unref(transport.tls);
		return stream;
	}
	TAILQ_REMOVE(&http->unused, connection, entry);
	*connection = (struct http_connection){
		.http = http,
		.stream = stream,
		.tls = transport.tls,
		.refused = transport.refused,
		.deadline.expire = on_time_over,
	};
	TAILQ_INSERT_TAIL(&http->open, connection, entry);
	wheel_set(&http->loop->wheel, &connection->deadline, loop_now(http->loop) + HTTP_TIME);
	/* Limit the input: evhttp reads on, without using it, until the response is sent. */
	bufferevent_setwatermark(stream, EV_READ, 0, INPUT_MOST);
	/* adopt() needs the bufferevent even if evhttp frees it. */
	bufferevent_incref(stream);
	http->accepted = connection;
	return stream;
}

void http_upkeep(struct http *http)
{
	if (!http->accepted)
		http_accept_more(http);
}

unsigned http_connections(const struct http *http)
{
	const struct http_connection *connection;
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

/* Returns false for a connection that there was no room for, nor memory. */
static bool mark_as_asked(struct http *http, struct evhttp_request *evhttp)
{
	const struct evhttp_connection *from = evhttp_request_get_connection(evhttp);
	struct http_connection *connection;

	/* It may have been accepted in the last poll of a turn, behind the arrivals. */
	if (http->accepted && !http->accepted->refused)
		adopt(http);
	TAILQ_FOREACH (connection, &http->open, entry) {
		if (connection->evhttp == from)
			return connection->has_asked = true;
	}
	return false;
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
	struct http_request *request =
		mark_as_asked(http, evhttp) ? malloc(sizeof(*request)) : NULL;

	stop_reading(evhttp_request_get_connection(evhttp));
	if (!request) {
		evhttp_send_error(evhttp, HTTP_SERVUNAVAIL, NULL);
		return;
	}
	*request = (struct http_request){http, evhttp, path_of(evhttp)};
	http->requests++;
	if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD) {
		http_add_header(request, "Allow", "GET, HEAD");
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

void http_wipe_header(struct http_request *request, const char *name)
{
	struct evkeyval *header;

	TAILQ_FOREACH (header, evhttp_request_get_input_headers(request->evhttp), next) {
		if (strcasecmp(header->key, name) == 0)
			explicit_bzero(header->value, strlen(header->value));
	}
}

struct address http_client(const struct http_request *request)
{
	struct evhttp_connection *from = evhttp_request_get_connection(request->evhttp);
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);

	if (!from ||
		getpeername(bufferevent_getfd(evhttp_connection_get_bufferevent(from)),
			(struct sockaddr *)&address, &length) != 0)
		return (struct address){.family = AF_UNSPEC};
	return address_of((struct sockaddr *)&address, length);
}

void http_add_header(struct http_request *request, const char *name, const char *value)
{
	evhttp_add_header(evhttp_request_get_output_headers(request->evhttp), name, value);
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

static void add_headers(const struct http_request *request, const struct http_answer *answer)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(request->evhttp);
	const struct http_header *common = request->http->options.headers;
	char length[24];

	snprintf(length, sizeof(length), "%zu", answer->length);
	evhttp_add_header(headers, "Content-Type", answer->type);
	evhttp_add_header(headers, "Content-Length", length);
	evhttp_add_header(headers, "Connection", "close");
	evhttp_add_header(headers, "Cache-Control", "no-store");
	for (; common && common->name; common++)
		evhttp_add_header(headers, common->name, common->value);
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
	add_headers(request, answer);
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

/* --- opening and closing ------------------------------------------------------------------ */

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
		if (http_listen(http, why, size)) {
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
