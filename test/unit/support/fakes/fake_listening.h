/* SPDX-License-Identifier: ISC */
/*
 * Clients that LISTEN, and the listening server of their pool, with scripted connections: see
 * fake_pool. Clients can share it only if their client_encoding is known.
 */
#ifndef PGUSHER_TEST_FAKE_LISTENING_H
#define PGUSHER_TEST_FAKE_LISTENING_H

#include "support/fakes/fake_pool.h"
#include "wire/message.h"
#include "wire/writer.h"

#define FAKE_ENCODING "UTF8"

/* From now on new clients and servers of the pool have the encoding of the database. */
static inline void listening_know_encoding(struct pool *pool)
{
	const int index = parameter_index(fake_registry.parameters, "client_encoding");
	struct parameters *set = parameters_with(
		fake_registry.parameters, pool->welcome, (unsigned)index, FAKE_ENCODING);

	assert_non_null(set);
	parameters_unref(pool->welcome);
	pool->welcome = set;
}

/* The server that was launched logs in. */
static inline struct endpoint *listening_log_in(struct endpoint *server)
{
	assert_non_null(server);
	fake_connected(server, 0);
	send_letters(server, "R");
	send_parameter_status(server, "client_encoding", FAKE_ENCODING);
	send_letters(server, "KZ");
	return server;
}

/* The server has run a command with this tag. */
static inline void listening_answer(struct endpoint *server, const char *tag)
{
	struct buffer out = {0};

	writer_command_complete(&out, tag);
	writer_ready(&out, READY_IDLE);
	send_buffer(server, &out);
}

static inline void listening_write_notification(
	struct buffer *out, const char *channel, const char *payload)
{
	const size_t mark = writer_begin(out, PQ_NOTIFICATION_RESPONSE);

	writer_int32(out, 7);
	writer_string(out, channel);
	writer_string(out, payload);
	writer_end(out, mark);
}

static inline void listening_notify(
	struct endpoint *server, const char *channel, const char *payload)
{
	struct buffer out = {0};

	listening_write_notification(&out, channel, payload);
	send_buffer(server, &out);
}

/* The text of the last Query that read_letters() returned. */
static inline const char *listening_query(const struct endpoint *server)
{
	size_t length;

	return (const char *)received_body(server, &length);
}

/* The payload of the last message that read_letters() returned, which is a notification. */
static inline const char *listening_payload(const struct endpoint *client)
{
	size_t length;
	const char *body = (const char *)received_body(client, &length) + sizeof(uint32_t);

	return body + strlen(body) + 1;
}

#endif
