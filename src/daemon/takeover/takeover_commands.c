/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "daemon/takeover/takeover_parts.h"
#include "session/takeover/inventory.h"
#include "wire/message.h"
#include "wire/report.h"
#include "wire/row.h"
#include "wire/startup.h"

enum {
	/* A process that has nothing to wait for answers sooner, unless it hangs. */
	ANSWER_SECONDS = 10,
	/* How often a PgBouncer is asked for waiting clients, and the pause between. */
	QUEUE_TRIES = 200,
	QUEUE_PAUSE_USEC = 10000,
	/* Servers that a pool of a PgBouncer gets besides: others use PostgreSQL too. */
	ROOM_MOST = 50,
	/* Column of SHOW POOLS that counts them, and columns of SHOW CONFIG, in all versions. */
	CL_WAITING = 3,
	CONFIG_KEY = 0,
	CONFIG_VALUE = 1,
	ROW_COLUMNS = CL_WAITING + 1,
};

static bool keep_item(struct takeover *takeover, const struct frame *frame, bool has_descriptor)
{
	const struct takeover_item item = {
		.start = takeover->messages.length,
		.length = frame->total,
		.fd = has_descriptor ? takeover_take_descriptor(takeover) : -1,
	};

	if (has_descriptor && item.fd < 0)
		return takeover_fail(
			takeover, "the old process sent a message without its descriptor");
	return (buffer_append(&takeover->messages, takeover->input.data, frame->total) &&
		       buffer_append(&takeover->items, &item, sizeof(item))) ||
		takeover_fail(takeover, "no memory for a takeover");
}

static bool comes_with_descriptor(uint8_t kind)
{
	return kind == INVENTORY_LISTENER || kind == INVENTORY_CLIENT ||
		kind == INVENTORY_SERVER;
}

/* An inventory consists of CopyData only, SHOW FDS of DataRows only. */
static bool take_item(struct takeover *takeover, const struct frame *frame)
{
	if (frame->type != takeover->item_type || frame->total == FRAME_HEADER_SIZE)
		return takeover_fail(takeover, "the old process speaks another protocol");
	return keep_item(takeover, frame,
		frame->type == PQ_DATA_ROW ||
			comes_with_descriptor(takeover->input.data[FRAME_HEADER_SIZE]));
}

/* A column of a row, as a text that may be cut. Returns false if there is none. */
static bool read_column(const struct takeover *takeover, const struct frame *frame, int wanted,
	char *out, size_t size)
{
	struct row_value values[ROW_COLUMNS] = {0};
	const int columns = row_read(
		frame_body(takeover->input.data), frame_body_size(frame), values, ROW_COLUMNS);

	if (columns <= wanted)
		return false;
	snprintf(out, size, "%.*s",
		values[wanted].length < size ? (int)values[wanted].length : 0,
		values[wanted].data ? (const char *)values[wanted].data : "");
	return true;
}

/* A row of SHOW POOLS. */
static bool count_waiting(struct takeover *takeover, const struct frame *frame)
{
	char text[32];
	long long waiting;

	if (!read_column(takeover, frame, CL_WAITING, text, sizeof(text)))
		return takeover_fail(takeover, "the old process speaks another protocol");
	if (text_to_integer(text, &waiting) && waiting > 0)
		takeover->waiting += (unsigned long long)waiting;
	return true;
}

/* A row of SHOW CONFIG. */
static bool find_room(struct takeover *takeover, const struct frame *frame)
{
	char key[64], text[32];
	long long room;

	if (!read_column(takeover, frame, CONFIG_KEY, key, sizeof(key)) ||
		!read_column(takeover, frame, CONFIG_VALUE, text, sizeof(text)))
		return takeover_fail(takeover, "the old process speaks another protocol");
	if (strcmp(key, "default_pool_size") == 0 && text_to_integer(text, &room) && room > 0)
		takeover->room_before = (unsigned long long)room;
	return true;
}

/* An ErrorResponse: UNKNOWN if the old process does not have the command, else FAILED. */
static enum takeover_answer classify_error(struct takeover *takeover, const struct frame *frame)
{
	struct report report;

	report_parse(frame_body(takeover->input.data), frame_body_size(frame), &report);
	if (report.text && strncmp(report.text, "invalid command", 15) == 0)
		return TAKEOVER_ANSWER_UNKNOWN;
	snprintf(takeover->why, takeover->why_size, "the old process answers: %s",
		report.text ? report.text : "no");
	return TAKEOVER_ANSWER_FAILED;
}

/* Without AuthenticationOk the console wants a password: the old process has another user. */
static bool is_authenticated(const struct buffer *input, const struct frame *frame)
{
	struct reader reader;

	reader_init(&reader, frame_body(input->data), frame_body_size(frame));
	return reader_int32(&reader) == AUTH_OK && !reader.failed;
}

/* Read an answer up to its ReadyForQuery, and keep its items. */
static enum takeover_answer read_answer(struct takeover *takeover)
{
	enum takeover_answer answer = TAKEOVER_ANSWER_DONE;
	struct frame frame;

	while (answer != TAKEOVER_ANSWER_FAILED) {
		bool good = true;

		if (!takeover_next_message(takeover, &frame))
			return TAKEOVER_ANSWER_FAILED;
		switch (frame.type) {
		case PQ_ERROR_RESPONSE:
			answer = classify_error(takeover, &frame);
			break;
		case PQ_COPY_DATA:
		case PQ_DATA_ROW:
			good = (takeover->take_row ? takeover->take_row : take_item)(
				takeover, &frame);
			break;
		case PQ_AUTHENTICATION:
			good = is_authenticated(&takeover->input, &frame);
			break;
		default:
			break;
		}
		buffer_consume(&takeover->input, frame.total);
		if (!good)
			return TAKEOVER_ANSWER_FAILED;
		if (frame.type == PQ_READY_FOR_QUERY)
			return answer;
	}
	return answer;
}

enum takeover_answer takeover_ask(struct takeover *takeover, const char *sql)
{
	struct buffer message = {0};
	bool sent;

	writer_query(&message, sql);
	sent = takeover_send(takeover, &message);
	buffer_free(&message);
	return sent ? read_answer(takeover) : TAKEOVER_ANSWER_FAILED;
}

/*
 * In a directory like /tmp any system user can listen, and pass listeners that would give that
 * user the passwords of our clients.
 */
static bool is_trusted_peer(int socket)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
		(peer.uid == geteuid() || peer.uid == 0);
}

static bool open_socket(struct takeover *takeover, const struct settings *settings)
{
	struct sockaddr_un address;
	char path[sizeof(address.sun_path)];
	const int length = snprintf(path, sizeof(path), "%s/.s.PGSQL.%d",
		settings->unix_socket_dir, settings->listen_port);

	if (length < 0 || (size_t)length >= sizeof(path))
		return takeover_fail(takeover, "unix_socket_dir is too long");
	takeover->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	takeover_set_timeout(takeover, ANSWER_SECONDS * USEC_PER_SEC);
	if (takeover->socket < 0 ||
		connect(takeover->socket, (const struct sockaddr *)&address,
			address_unix(&address, path)) != 0)
		return takeover_fail(takeover, "cannot connect to the old process");
	return is_trusted_peer(takeover->socket) ||
		takeover_fail(takeover, "the old process runs as another user");
}

static bool log_in(struct takeover *takeover)
{
	struct buffer message = {0};
	size_t mark;
	bool sent;

	mark = writer_begin(&message, 0);
	writer_int32(&message, PROTOCOL_3_0);
	writer_string(&message, "user");
	writer_string(&message, "pgbouncer");
	writer_string(&message, "database");
	writer_string(&message, "pgbouncer");
	writer_byte(&message, 0);
	writer_end(&message, mark);
	sent = takeover_send(takeover, &message);
	buffer_free(&message);
	if (sent && read_answer(takeover) == TAKEOVER_ANSWER_DONE)
		return true;
	if (takeover->timed_out)
		return false;
	return takeover_fail(takeover, "takeover: login failed");
}

static bool ask_rows(
	struct takeover *takeover, const char *sql, takeover_row_function *take_row)
{
	enum takeover_answer answer;

	takeover->take_row = take_row;
	answer = takeover_ask(takeover, sql);
	takeover->take_row = NULL;
	return answer == TAKEOVER_ANSWER_DONE;
}

/* Give each pool of an old PgBouncer room for this many servers. */
static bool make_room(struct takeover *takeover, unsigned long long room)
{
	char sql[64];

	snprintf(sql, sizeof(sql), "SET default_pool_size = %llu;", room);
	takeover->room = room;
	return takeover_ask(takeover, sql) == TAKEOVER_ANSWER_DONE;
}

/* Without a limit of its pools clients wait for other reasons. */
static bool make_room_for_waiting(struct takeover *takeover)
{
	const unsigned long long room = takeover->room_before +
		(takeover->waiting < ROOM_MOST ? takeover->waiting : ROOM_MOST);

	return takeover->room_before == 0 || room <= takeover->room ||
		make_room(takeover, room);
}

/*
 * A suspended PgBouncer closes the clients that wait for a server. Give it more servers, until
 * none waits; the new process closes those beyond its pool_size. Where they are too many, or
 * PgBouncer may not have more, as by a pool_size of the database, this ends after a while.
 */
static bool serve_waiting(struct takeover *takeover)
{
	/* Its own value: that of the new configuration may be another one, or `auto`. */
	if (!ask_rows(takeover, "SHOW CONFIG;", find_room))
		return false;
	for (int tries = 0; tries < QUEUE_TRIES; tries++) {
		takeover->waiting = 0;
		if (!ask_rows(takeover, "SHOW POOLS;", count_waiting))
			return false;
		if (takeover->waiting == 0)
			return true;
		if (!make_room_for_waiting(takeover))
			return false;
		usleep(QUEUE_PAUSE_USEC);
	}
	log_write(LEVEL_WARNING,
		"%llu clients wait for a server: the old process closes those that still do",
		takeover->waiting);
	return true;
}

void takeover_undo(struct takeover *takeover)
{
	char ignored[256];

	if (takeover->socket < 0 || takeover->room == 0)
		return;
	takeover->why = ignored;
	takeover->why_size = sizeof(ignored);
	takeover_forget_signal();
	takeover_set_timeout(takeover, USEC_PER_SEC);
	make_room(takeover, takeover->room_before);
}

static bool ask_pgbouncer(struct takeover *takeover)
{
	if (!serve_waiting(takeover))
		return false;
	log_write(LEVEL_LOG, "login OK, sending SUSPEND");
	takeover->item_type = 0;
	if (takeover_ask(takeover, "SUSPEND;") != TAKEOVER_ANSWER_DONE)
		return false;
	log_write(LEVEL_LOG, "SUSPEND finished, sending SHOW FDS");
	takeover->item_type = PQ_DATA_ROW;
	if (takeover_ask(takeover, "SHOW FDS;") != TAKEOVER_ANSWER_DONE)
		return false;
	log_write(LEVEL_LOG, "SHOW FDS finished");
	return true;
}

bool takeover_receive_all(struct takeover *takeover, const struct settings *settings)
{
	char sql[32];

	log_write(LEVEL_LOG, "takeover_init: launching connection");
	if (!open_socket(takeover, settings) || !log_in(takeover))
		return false;
	/*
	 * The old process answers when its clients have come to rest, within suspend_timeout.
	 */
	if (settings->suspend_timeout > 0)
		takeover_set_timeout(
			takeover, settings->suspend_timeout + ANSWER_SECONDS * USEC_PER_SEC);
	else
		takeover_set_timeout(takeover, 0);
	snprintf(sql, sizeof(sql), "HANDOVER %d;", INVENTORY_VERSION);
	takeover->item_type = PQ_COPY_DATA;
	switch (takeover_ask(takeover, sql)) {
	case TAKEOVER_ANSWER_DONE:
		takeover->is_pgusher = true;
		log_write(LEVEL_LOG, "HANDOVER finished");
		break;
	case TAKEOVER_ANSWER_UNKNOWN:
		if (!ask_pgbouncer(takeover))
			return false;
		break;
	case TAKEOVER_ANSWER_FAILED:
		return false;
	}
	takeover->item_type = 0;
	log_write(LEVEL_LOG, "disko over, going background");
	return true;
}
