/* SPDX-License-Identifier: ISC */
/*
 * Shared by the sources of daemon/takeover/takeover only: the received bytes and descriptors,
 * the socket, and the commands sent to the old process. Where one of these functions fails,
 * `why` has the text.
 */
#ifndef PGUSHER_DAEMON_TAKEOVER_TAKEOVER_PARTS_H
#define PGUSHER_DAEMON_TAKEOVER_TAKEOVER_PARTS_H

#include "daemon/takeover/takeover.h"
#include "session/takeover/adoption.h"
#include "wire/frame.h"
#include "wire/writer.h"

/* A received record of an inventory, or row of SHOW FDS, and its descriptor. */
struct takeover_item {
	size_t start, length; /* of its message, in takeover.messages */
	int fd; /* -1: it has none, or the descriptor has been handed on */
};

/* Returns false, with the reason, if the row is not as it should be. */
typedef bool takeover_row_function(struct takeover *takeover, const struct frame *frame);

struct takeover {
	int socket;
	usec_t began; /* by the clock, since nothing else runs meanwhile */
	bool timed_out; /* the old process did not answer in time */
	bool is_pgusher; /* the old process: items are records, else rows of SHOW FDS */
	/* Takes a row of a SHOW, which is no item then; NULL: rows are items. */
	takeover_row_function *take_row;
	unsigned long long waiting; /* clients of an old PgBouncer that wait for a server */
	/* Its default_pool_size, as it was and as it was set; 0: no limit, or not set. */
	unsigned long long room_before, room;
	uint8_t item_type; /* the type of messages that are items now; 0: none are */
	struct buffer input; /* received and not yet parsed; with all below, secret */
	struct buffer messages; /* messages of the items */
	struct buffer items; /* struct takeover_item */
	struct buffer descriptors; /* int: received, their messages not yet complete */
	struct buffer listeners; /* struct listen_socket */
	struct buffer rows; /* struct fds_row *: owned, for as long as links borrow from them */
	struct adoption *adoption;
	char *why;
	size_t why_size;
};

/* --- src/daemon/takeover/takeover_wire.c -------------------------------------------------- */

/*
 * Handle SIGTERM and SIGINT: the call in progress fails with an error for the log, instead of
 * the process being killed at once. The loop replaces these handlers later.
 */
void takeover_watch_signals(void);

/* Forget a signal that came: the calls that follow are to undo something. */
void takeover_forget_signal(void);

/* Set the text of the error; after a signal, that of an interruption. Always returns false. */
bool takeover_fail(struct takeover *takeover, const char *why);

/* How long each send or receive may block; 0: no limit. */
void takeover_set_timeout(const struct takeover *takeover, usec_t limit);

/* Send the whole message. */
bool takeover_send(struct takeover *takeover, const struct buffer *message);

/* Receive until the next message is complete, at the front of the input. */
bool takeover_next_message(struct takeover *takeover, struct frame *frame);

/* The oldest received descriptor, which the caller owns from now on; -1: none. */
int takeover_take_descriptor(struct takeover *takeover);

/* --- src/daemon/takeover/takeover_commands.c ---------------------------------------------- */

enum takeover_answer { TAKEOVER_ANSWER_DONE, TAKEOVER_ANSWER_UNKNOWN, TAKEOVER_ANSWER_FAILED };

/*
 * Send a command, read its answer, and keep the items in it. Returns UNKNOWN if the old process
 * has no command of that name.
 */
enum takeover_answer takeover_ask(struct takeover *takeover, const char *sql);

/*
 * Undo what was set in an old PgBouncer that is still connected. The caller closes the connection,
 * at which it resumes work.
 */
void takeover_undo(struct takeover *takeover);

/* Connect, log in, and receive all items. */
bool takeover_receive_all(struct takeover *takeover, const struct settings *settings);

#endif
