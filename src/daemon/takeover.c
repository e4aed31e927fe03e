/* SPDX-License-Identifier: ISC */
#include "daemon/takeover.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/fds_row.h"
#include "daemon/pidfile.h"
#include "session/adoption.h"
#include "session/adoption_statements.h"
#include "session/inventory.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/report.h"
#include "wire/startup.h"

enum {
	/* Longest message, which may be what a slow client has not taken of a large result. */
	MESSAGE_MAX = 1 << 30,
	RECEIVE_SIZE = 64 * 1024,
	/* Descriptors that one receive may bring. */
	DESCRIPTORS_AT_ONCE = 16,
	PIDFILE_POLL_MILLISECONDS = 20,
	PIDFILE_POLLS_MOST = 1000,
	/* What has nothing to wait for answers sooner, unless it hangs. */
	SILENCE_SECONDS = 10,
};

/* Something that was told, and the descriptor that came with it. */
struct item {
	size_t start, length; /* in takeover.told */
	int fd; /* -1: none, or it has a new owner */
};

struct takeover {
	int socket;
	bool is_silent; /* the old process hangs */
	bool is_ours; /* what was told is an inventory, else rows of SHOW FDS */
	uint8_t expected; /* the type of messages that are items now; 0: none are */
	struct buffer input; /* received and not yet looked at; with all below, secret */
	struct buffer told; /* messages that are items */
	struct buffer items; /* struct item */
	struct buffer descriptors; /* int: received, of messages that are not yet whole */
	struct buffer listeners; /* int */
	struct buffer rows; /* struct fds_row *: owned, for as long as links borrow from them */
	struct adoption *adoption;
	char *why;
	size_t why_size;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

/* A message for the log and an end, not a sudden one; the loop sets its own later. */
static void watch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

static bool fail(struct takeover *takeover, const char *why)
{
	snprintf(takeover->why, takeover->why_size, "%s",
		interrupted ? "takeover was in progress, going down immediately" : why);
	return false;
}

/* Whoever says and takes nothing for that long hangs; 0: there is no saying. */
static void set_patience(const struct takeover *takeover, usec_t patience)
{
	const struct timeval limit = {
		.tv_sec = patience / USEC_PER_SEC,
		.tv_usec = patience % USEC_PER_SEC,
	};

	setsockopt(takeover->socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(takeover->socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

/* Nothing could be received. */
static bool fail_to_hear(struct takeover *takeover)
{
	takeover->is_silent = errno == EAGAIN || errno == EWOULDBLOCK;
	return fail(takeover,
		takeover->is_silent ? "the old process does not answer"
				    : "the old process has gone, or does not let us");
}

/* --- bytes -------------------------------------------------------------------------------- */

static bool send_all(struct takeover *takeover, const struct buffer *message)
{
	size_t at = 0;

	while (!message->failed && at < message->length && !interrupted) {
		const ssize_t sent = send(takeover->socket, message->data + at,
			message->length - at, MSG_NOSIGNAL);

		if (sent < 0 && errno != EINTR)
			break;
		if (sent > 0)
			at += (size_t)sent;
	}
	return at == message->length ||
		fail(takeover, "the old process does not listen any more");
}

static void keep_descriptors(struct takeover *takeover, struct msghdr *message)
{
	struct cmsghdr *part;

	for (part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
		if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS)
			buffer_append(&takeover->descriptors, CMSG_DATA(part),
				part->cmsg_len - CMSG_LEN(0));
	}
}

static bool receive(struct takeover *takeover)
{
	static uint8_t bytes[RECEIVE_SIZE];
	union {
		struct cmsghdr header;
		uint8_t space[CMSG_SPACE(DESCRIPTORS_AT_ONCE * sizeof(int))];
	} control;
	struct iovec piece = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	const ssize_t got = recvmsg(takeover->socket, &message, MSG_CMSG_CLOEXEC);

	if (got < 0 && errno == EINTR && !interrupted)
		return true;
	if (got == 0)
		return fail(takeover, "the old process has gone, or does not let us");
	if (got < 0)
		return fail_to_hear(takeover);
	keep_descriptors(takeover, &message);
	buffer_append(&takeover->input, bytes, (size_t)got);
	explicit_bzero(bytes, (size_t)got);
	if (message.msg_flags & MSG_CTRUNC)
		return fail(takeover, "no descriptors left for those of the old process");
	return (!takeover->input.failed && !takeover->descriptors.failed) ||
		fail(takeover, "no memory for a takeover");
}

/* Have the next message whole, at the front of the input. */
static bool next_message(struct takeover *takeover, struct frame *frame)
{
	for (;;) {
		switch (frame_peek(
			takeover->input.data, takeover->input.length, MESSAGE_MAX, frame)) {
		case FRAME_WHOLE:
			return true;
		case FRAME_MALFORMED:
			return fail(takeover, "the old process speaks another protocol");
		case FRAME_PARTIAL:
		case FRAME_SHORT:
			if (!receive(takeover))
				return false;
		}
	}
}

static int take_descriptor(struct takeover *takeover)
{
	int fd;

	if (takeover->descriptors.length < sizeof(fd))
		return -1;
	memcpy(&fd, takeover->descriptors.data, sizeof(fd));
	buffer_consume(&takeover->descriptors, sizeof(fd));
	return fd;
}

/* --- the conversation --------------------------------------------------------------------- */

static bool keep_item(struct takeover *takeover, const struct frame *frame, bool has_descriptor)
{
	const struct item item = {
		.start = takeover->told.length,
		.length = frame->total,
		.fd = has_descriptor ? take_descriptor(takeover) : -1,
	};

	if (has_descriptor && item.fd < 0)
		return fail(takeover, "the old process told of a descriptor and sent none");
	return (buffer_append(&takeover->told, takeover->input.data, frame->total) &&
		       buffer_append(&takeover->items, &item, sizeof(item))) ||
		fail(takeover, "no memory for a takeover");
}

static bool comes_with_descriptor(uint8_t kind)
{
	return kind == INVENTORY_LISTENER || kind == INVENTORY_CLIENT ||
		kind == INVENTORY_SERVER;
}

/* An inventory is all CopyData, and SHOW FDS all rows: nothing else is told. */
static bool take_item(struct takeover *takeover, const struct frame *frame)
{
	if (frame->type != takeover->expected || frame->total == FRAME_HEADER_SIZE)
		return fail(takeover, "the old process speaks another protocol");
	return keep_item(takeover, frame,
		frame->type == PQ_DATA_ROW ||
			comes_with_descriptor(takeover->input.data[FRAME_HEADER_SIZE]));
}

enum answer { ANSWER_DONE, ANSWER_UNKNOWN, ANSWER_FAILED };

/* An ErrorResponse: is it that the command is not known? */
static enum answer judge_error(struct takeover *takeover, const struct frame *frame)
{
	struct report report;

	report_parse(frame_body(takeover->input.data), frame_body_size(frame), &report);
	if (report.text && strncmp(report.text, "invalid command", 15) == 0)
		return ANSWER_UNKNOWN;
	snprintf(takeover->why, takeover->why_size, "the old process says: %s",
		report.text ? report.text : "no");
	return ANSWER_FAILED;
}

/* Whoever runs as another user is asked for a password. */
static bool is_welcome(const struct buffer *input, const struct frame *frame)
{
	struct reader reader;

	reader_init(&reader, frame_body(input->data), frame_body_size(frame));
	return reader_int32(&reader) == AUTH_OK && !reader.failed;
}

/* Read an answer up to its ReadyForQuery, and keep what is told in it. */
static enum answer read_answer(struct takeover *takeover)
{
	enum answer answer = ANSWER_DONE;
	struct frame frame;

	while (answer != ANSWER_FAILED) {
		bool good = true;

		if (!next_message(takeover, &frame))
			return ANSWER_FAILED;
		switch (frame.type) {
		case PQ_ERROR_RESPONSE:
			answer = judge_error(takeover, &frame);
			break;
		case PQ_COPY_DATA:
		case PQ_DATA_ROW:
			good = take_item(takeover, &frame);
			break;
		case PQ_AUTHENTICATION:
			good = is_welcome(&takeover->input, &frame);
			break;
		default:
			break;
		}
		buffer_consume(&takeover->input, frame.total);
		if (!good)
			return ANSWER_FAILED;
		if (frame.type == PQ_READY_FOR_QUERY)
			return answer;
	}
	return answer;
}

static enum answer ask(struct takeover *takeover, const char *sql)
{
	struct buffer message = {0};
	bool sent;

	writer_query(&message, sql);
	sent = send_all(takeover, &message);
	buffer_free(&message);
	return sent ? read_answer(takeover) : ANSWER_FAILED;
}

/* In a folder like /tmp anybody may listen, and offer listeners that get our clients' passwords. */
static bool is_one_of_us(int socket)
{
	struct ucred who;
	socklen_t length = sizeof(who);

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 &&
		(who.uid == geteuid() || who.uid == 0);
}

static bool open_socket(struct takeover *takeover, const struct settings *settings)
{
	struct sockaddr_un address;
	char path[sizeof(address.sun_path)];
	const int length = snprintf(path, sizeof(path), "%s/.s.PGSQL.%d",
		settings->unix_socket_dir, settings->listen_port);

	if (length < 0 || (size_t)length >= sizeof(path))
		return fail(takeover, "unix_socket_dir is too long");
	takeover->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	set_patience(takeover, SILENCE_SECONDS * USEC_PER_SEC);
	if (takeover->socket < 0 ||
		connect(takeover->socket, (const struct sockaddr *)&address,
			address_unix(&address, path)) != 0)
		return fail(takeover, "cannot connect to the old process");
	return is_one_of_us(takeover->socket) ||
		fail(takeover, "the old process runs as another user");
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
	sent = send_all(takeover, &message);
	buffer_free(&message);
	if (sent && read_answer(takeover) == ANSWER_DONE)
		return true;
	if (takeover->is_silent)
		return false;
	return interrupted ? fail(takeover, "") : fail(takeover, "takeover: login failed");
}

static bool ask_for_descriptors(struct takeover *takeover)
{
	log_write(LEVEL_LOG, "login OK, sending SUSPEND");
	takeover->expected = 0;
	if (ask(takeover, "SUSPEND;") != ANSWER_DONE)
		return false;
	log_write(LEVEL_LOG, "SUSPEND finished, sending SHOW FDS");
	takeover->expected = PQ_DATA_ROW;
	if (ask(takeover, "SHOW FDS;") != ANSWER_DONE)
		return false;
	log_write(LEVEL_LOG, "SHOW FDS finished");
	return true;
}

static bool converse(struct takeover *takeover, const struct settings *settings)
{
	char sql[32];

	log_write(LEVEL_LOG, "takeover_init: launching connection");
	if (!open_socket(takeover, settings) || !log_in(takeover))
		return false;
	/* Its clients have that long to come to rest; where they have for ever, so has it. */
	if (settings->suspend_timeout > 0)
		set_patience(
			takeover, settings->suspend_timeout + SILENCE_SECONDS * USEC_PER_SEC);
	else
		set_patience(takeover, 0);
	snprintf(sql, sizeof(sql), "HANDOVER %d;", INVENTORY_VERSION);
	takeover->expected = PQ_COPY_DATA;
	switch (ask(takeover, sql)) {
	case ANSWER_DONE:
		takeover->is_ours = true;
		log_write(LEVEL_LOG, "HANDOVER finished");
		break;
	case ANSWER_UNKNOWN:
		if (!ask_for_descriptors(takeover))
			return false;
		break;
	case ANSWER_FAILED:
		return false;
	}
	takeover->expected = 0;
	log_write(LEVEL_LOG, "disko over, going background");
	return true;
}

struct takeover *takeover_begin(const struct settings *settings, char *why, size_t size)
{
	struct takeover *takeover = calloc(1, sizeof(*takeover));

	if (!takeover) {
		snprintf(why, size, "no memory for a takeover");
		return NULL;
	}
	takeover->socket = -1;
	takeover->why = why;
	takeover->why_size = size;
	buffer_init_secret(&takeover->input);
	buffer_init_secret(&takeover->told);
	watch_signals();
	if (converse(takeover, settings))
		return takeover;
	takeover_free(takeover);
	return NULL;
}

/* --- adopting ----------------------------------------------------------------------------- */

static struct item *item_at(const struct takeover *takeover, size_t index)
{
	return index < takeover->items.length / sizeof(struct item)
		? (struct item *)takeover->items.data + index
		: NULL;
}

static const uint8_t *body_of(
	const struct takeover *takeover, const struct item *item, size_t *length)
{
	*length = item->length - FRAME_HEADER_SIZE;
	return takeover->told.data + item->start + FRAME_HEADER_SIZE;
}

static bool is_listener(const struct takeover *takeover, const struct item *item)
{
	size_t length;
	const uint8_t *body = body_of(takeover, item, &length);

	return takeover->is_ours ? body[0] == INVENTORY_LISTENER
				 : fds_row_is_listener(body, length);
}

unsigned takeover_listeners(struct takeover *takeover, const int **sockets)
{
	struct item *item;

	for (size_t i = 0; (item = item_at(takeover, i)) != NULL; i++) {
		if (item->fd < 0 || !is_listener(takeover, item) ||
			!buffer_append(&takeover->listeners, &item->fd, sizeof(item->fd)))
			continue;
		item->fd = -1;
	}
	*sockets = (const int *)takeover->listeners.data;
	return (unsigned)(takeover->listeners.length / sizeof(int));
}

/* The row is kept: links borrow from it until they wake. False: no memory, or no row. */
static bool adopt_row(struct takeover *takeover, const uint8_t *body, size_t length, int fd)
{
	struct fds_row *row = fds_row_new(body, length);

	if (!row || !buffer_append(&takeover->rows, &row, sizeof(struct fds_row *))) {
		fds_row_free(row);
		close(fd);
		return false;
	}
	fds_row_adopt(row, takeover->adoption, fd);
	return true;
}

static bool adopt_item(struct takeover *takeover, struct item *item)
{
	size_t length;
	const uint8_t *body = body_of(takeover, item, &length);
	const int fd = item->fd;

	item->fd = -1;
	if (is_listener(takeover, item))
		return true;
	if (takeover->is_ours)
		return adoption_record(takeover->adoption, body[0], body + 1, length - 1, fd);
	return adopt_row(takeover, body, length, fd);
}

bool takeover_adopt(struct takeover *takeover, struct registry *registry)
{
	struct item *item;

	takeover->adoption = adoption_new(registry);
	if (!takeover->adoption)
		return false;
	if (!takeover->is_ours)
		adoption_statements_keep_clear(registry);
	for (size_t i = 0; (item = item_at(takeover, i)) != NULL; i++) {
		if (adopt_item(takeover, item))
			continue;
		/* Before the registry goes, since it has counts there. */
		adoption_free(takeover->adoption);
		takeover->adoption = NULL;
		return false;
	}
	adoption_join(takeover->adoption);
	return true;
}

/* --- the end ------------------------------------------------------------------------------ */

/* PgBouncer answers by its end; ours in words, since its end might be an accident. */
static bool commit_old_pgbouncer(struct takeover *takeover)
{
	struct buffer message = {0};
	char ignored[256];
	ssize_t got = 1;
	bool sent;

	log_write(LEVEL_LOG, "sending SHUTDOWN;");
	writer_query(&message, "SHUTDOWN;");
	sent = send_all(takeover, &message);
	buffer_free(&message);
	while (sent && (got > 0 || (got < 0 && errno == EINTR)))
		got = recv(takeover->socket, ignored, sizeof(ignored), 0);
	return sent;
}

bool takeover_commit(struct takeover *takeover, char *why, size_t size)
{
	bool good;

	takeover->why = why;
	takeover->why_size = size;
	snprintf(why, size, "the old process has not let go");
	set_patience(takeover, 0); /* whoever gave up now could not tell whose all of it is */
	if (takeover->is_ours)
		good = ask(takeover, "HANDOVER COMMIT;") == ANSWER_DONE;
	else
		good = commit_old_pgbouncer(takeover);
	close(takeover->socket);
	takeover->socket = -1;
	return good;
}

void takeover_wait(const struct takeover *takeover, const char *pidfile)
{
	(void)takeover;
	if (pidfile && pidfile[0] != '\0' && access(pidfile, F_OK) == 0) {
		log_write(LEVEL_LOG, "waiting for old pidfile to go away");
		for (int i = 0; i < PIDFILE_POLLS_MOST && access(pidfile, F_OK) == 0; i++)
			poll(NULL, 0, PIDFILE_POLL_MILLISECONDS);
	}
	log_write(LEVEL_LOG, "old process killed, resuming work");
}

void takeover_resume(struct takeover *takeover)
{
	adoption_wake(takeover->adoption);
}

static void close_descriptors(struct buffer *descriptors)
{
	for (size_t i = 0; i < descriptors->length / sizeof(int); i++)
		close(((int *)descriptors->data)[i]);
	buffer_free(descriptors);
}

void takeover_free(struct takeover *takeover)
{
	struct item *item;

	if (!takeover)
		return;
	for (size_t i = 0; (item = item_at(takeover, i)) != NULL; i++) {
		if (item->fd >= 0)
			close(item->fd);
	}
	for (size_t i = 0; i < takeover->rows.length / sizeof(struct fds_row *); i++)
		fds_row_free(((struct fds_row **)takeover->rows.data)[i]);
	if (takeover->socket >= 0)
		close(takeover->socket);
	close_descriptors(&takeover->descriptors);
	buffer_free(&takeover->listeners);
	buffer_free(&takeover->rows);
	buffer_free(&takeover->items);
	buffer_wipe(&takeover->input);
	buffer_wipe(&takeover->told);
	adoption_free(takeover->adoption);
	free(takeover);
}
