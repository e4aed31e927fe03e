/* SPDX-License-Identifier: ISC */
/*
 * What the bodies of daemon/takeover have for one another, and nobody else: bytes and descriptors of
 * the old process, what is said to it and told by it, and what becomes of that. Where one of them
 * fails, `why` has the text.
 */
#ifndef PGUSHER_DAEMON_TAKEOVER_PARTS_H
#define PGUSHER_DAEMON_TAKEOVER_PARTS_H

#include "daemon/takeover.h"
#include "session/takeover/adoption.h"
#include "wire/frame.h"
#include "wire/writer.h"

/* Something that was told, and the descriptor that came with it. */
struct takeover_item {
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
	struct buffer items; /* struct takeover_item */
	struct buffer descriptors; /* int: received, of messages that are not yet whole */
	struct buffer listeners; /* int */
	struct buffer rows; /* struct fds_row *: owned, for as long as links borrow from them */
	struct adoption *adoption;
	char *why;
	size_t why_size;
};

/* --- src/daemon/takeover_wire.c ----------------------------------------------------------- */

/* A signal is a message for the log and an end, not a sudden one; the loop sets its own later. */
void takeover_watch_signals(void);

/* Always false; whoever was interrupted fails because of that. */
bool takeover_fail(struct takeover *takeover, const char *why);

/* Whoever says and takes nothing for that long hangs; 0: there is no saying. */
void takeover_set_patience(const struct takeover *takeover, usec_t patience);

/* All of it. */
bool takeover_send(struct takeover *takeover, const struct buffer *message);

/* Have the next message whole, at the front of the input. */
bool takeover_next_message(struct takeover *takeover, struct frame *frame);

/* The oldest descriptor that came, which is the caller's now; -1: none. */
int takeover_take_descriptor(struct takeover *takeover);

/* --- src/daemon/takeover_talk.c ----------------------------------------------------------- */

enum takeover_answer { TAKEOVER_ANSWER_DONE, TAKEOVER_ANSWER_UNKNOWN, TAKEOVER_ANSWER_FAILED };

/* Give a command; UNKNOWN: the old process has none of that name. What it tells is kept. */
enum takeover_answer takeover_ask(struct takeover *takeover, const char *sql);

/* From the connect until everything has been told. */
bool takeover_converse(struct takeover *takeover, const struct settings *settings);

#endif
