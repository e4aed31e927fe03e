/* SPDX-License-Identifier: ISC */
#include "daemon/modes/health_probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/text.h"
#include "wire/message.h"
#include "wire/report.h"
#include "wire/startup.h"
#include "wire/writer.h"

enum {
	/* An answer to a startup message is short; nothing longer is of interest. */
	ANSWER_MAX = 4096,
	HEADER_SIZE = 5, /* letter and length of a message */
};

struct connection {
	const struct health_probe *probe;
	int fd;
	SSL_CTX *context;
	SSL *ssl;
	char *why;
	size_t size;
};

static enum health no_answer(const struct connection *connection, const char *what)
{
	const bool late = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINPROGRESS;

	snprintf(connection->why, connection->size, "%s: %s", what,
		late		     ? "time limit"
			: errno != 0 ? strerror(errno)
				     : "connection closed");
	return HEALTH_NO_ANSWER;
}

/* --- bytes -------------------------------------------------------------------------------- */

/* Let the next call end at the deadline. Returns false, with errno set, if it is over. */
static bool limit_time(const struct connection *connection)
{
	const usec_t left = connection->probe->deadline - clock_monotonic();
	const struct timeval limit = {left / USEC_PER_SEC, left % USEC_PER_SEC};

	errno = EAGAIN;
	return left > 0 &&
		setsockopt(connection->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ==
		0 &&
		setsockopt(connection->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0;
}

static bool send_bytes(const struct connection *connection, const void *data, size_t length)
{
	ssize_t sent;

	if (!limit_time(connection))
		return false;
	errno = 0;
	if (connection->ssl)
		sent = SSL_write(connection->ssl, data, (int)length);
	else
		sent = send(connection->fd, data, length, MSG_NOSIGNAL);
	return sent == (ssize_t)length;
}

static bool receive_bytes(const struct connection *connection, uint8_t *data, size_t length)
{
	size_t have = 0;

	while (have < length) {
		ssize_t got;

		if (!limit_time(connection))
			return false;
		errno = 0;
		if (connection->ssl)
			got = SSL_read(connection->ssl, data + have, (int)(length - have));
		else
			got = recv(connection->fd, data + have, length - have, 0);
		if (got <= 0)
			return false;
		have += (size_t)got;
	}
	return true;
}

/* --- steps -------------------------------------------------------------------------------- */

static bool begin(struct connection *connection)
{
	const struct health_probe *probe = connection->probe;

	connection->fd = socket(probe->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return connection->fd >= 0 && limit_time(connection) &&
		connect(connection->fd, (const struct sockaddr *)&probe->address,
			probe->length) == 0;
}

/* Version 2 of the PROXY protocol, command LOCAL: proxy-protocol.txt of HAProxy, section 2.2. */
static bool send_proxy_header(const struct connection *connection)
{
	static const uint8_t header[] = "\r\n\r\n\0\r\nQUIT\n\x20\0\0";

	return send_bytes(connection, header, sizeof(header));
}

/* Protocol: "SSL Session Encryption". Returns the answer, 'S' or 'N'; 0 if there is none. */
static uint8_t request_tls(const struct connection *connection)
{
	struct buffer request = {0};
	uint8_t answer = 0;

	startup_write_request(&request, SSL_REQUEST_CODE);
	if (request.failed || !send_bytes(connection, request.data, request.length) ||
		!receive_bytes(connection, &answer, 1))
		answer = 0;
	buffer_free(&request);
	return answer;
}

/* The certificate is not looked at: no secret is sent. */
static bool encrypt(struct connection *connection)
{
	connection->context = SSL_CTX_new(TLS_client_method());
	connection->ssl = connection->context ? SSL_new(connection->context) : NULL;
	if (!connection->ssl || SSL_set_fd(connection->ssl, connection->fd) != 1 ||
		!limit_time(connection))
		return false;
	errno = 0;
	return SSL_connect(connection->ssl) == 1;
}

static bool send_startup(const struct connection *connection)
{
	struct buffer startup = {0};
	const size_t mark = startup_begin(&startup, PROTOCOL_3_0);
	bool done;

	writer_string(&startup, "user");
	writer_string(&startup, connection->probe->user);
	writer_string(&startup, "database");
	writer_string(&startup, connection->probe->database);
	startup_end(&startup, mark);
	done = !startup.failed && send_bytes(connection, startup.data, startup.length);
	buffer_free(&startup);
	return done;
}

/* Only this code means that no clients are accepted; PQping() decides so as well. */
static enum health judge_error(
	const struct connection *connection, const uint8_t *body, size_t length)
{
	struct report report;
	char text[200];

	report_parse(body, length, &report);
	if (!report_is(&report, "57P03"))
		return HEALTH_ACCEPTS;
	text_escape(text, sizeof(text), report.text ? report.text : "",
		report.text ? strlen(report.text) : 0);
	snprintf(connection->why, connection->size, "%s", text);
	return HEALTH_REJECTS;
}

static enum health read_answer(const struct connection *connection)
{
	uint8_t header[HEADER_SIZE], body[ANSWER_MAX];
	uint32_t length;

	if (!receive_bytes(connection, header, sizeof(header)))
		return no_answer(connection, "no answer");
	memcpy(&length, header + 1, sizeof(length));
	length = ntohl(length);
	errno = EPROTO;
	if (length < 4 || length - 4 > sizeof(body))
		return no_answer(connection, "not a pooler");
	if (header[0] == PQ_AUTHENTICATION)
		return HEALTH_ACCEPTS;
	if (header[0] != PQ_ERROR_RESPONSE)
		return no_answer(connection, "not a pooler");
	if (!receive_bytes(connection, body, length - 4))
		return no_answer(connection, "no answer");
	return judge_error(connection, body, length - 4);
}

static enum health ask(struct connection *connection)
{
	const struct health_probe *probe = connection->probe;
	uint8_t answer = 'N';

	if (!begin(connection))
		return no_answer(connection, "cannot connect");
	if (probe->proxy_header && !send_proxy_header(connection))
		return no_answer(connection, "cannot send");
	if (probe->tls) {
		answer = request_tls(connection);
		if (answer != 'S' && answer != 'N')
			return no_answer(connection, "no answer");
		if (probe->no_certificate)
			return HEALTH_ACCEPTS;
	}
	if (answer == 'S' && !encrypt(connection))
		return no_answer(connection, "TLS handshake failed");
	if (!send_startup(connection))
		return no_answer(connection, "cannot send");
	return read_answer(connection);
}

enum health health_probe(const struct health_probe *probe, char *why, size_t size)
{
	struct connection connection = {.probe = probe, .fd = -1, .why = why, .size = size};
	const enum health health = ask(&connection);

	SSL_free(connection.ssl);
	SSL_CTX_free(connection.context);
	if (connection.fd >= 0)
		close(connection.fd);
	return health;
}
