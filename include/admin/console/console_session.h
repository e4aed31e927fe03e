/* SPDX-License-Identifier: ISC */
/*
 * The state of one console (client->console), and what the modules of the console share:
 * sending answers, and reading only as fast as the client takes them.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_CONSOLE_SESSION_H
#define PGUSHER_ADMIN_CONSOLE_CONSOLE_SESSION_H

#include "admin/console/extended.h"
#include "admin/show/show_stream.h"
#include "model/client_link.h"
#include "net/passing.h"

/* The longest message that is collected; with so many bytes of input no more is read. */
enum { CONSOLE_INPUT_MAX = 1024 * 1024 };

struct console_session {
	struct loop_task
		task; /* queued when there are commands to run; at last, to free this */
	loop_function *run; /* the task's function */
	struct client_link *client; /* NULL: the client was closed */
	struct process *process; /* of the client */
	struct buffer input; /* received and not yet processed */
	struct buffer out; /* answers of the extended protocol that are not sent yet */
	struct extended extended;
	struct show_stream *show; /* rest of the answer to a simple query; NULL: none */
	struct passing *passing; /* an answer with descriptors being sent; NULL: none */
	bool is_waiting; /* an answer of the extended protocol comes later; messages wait for it */
	bool in_transaction; /* between a driver's BEGIN and COMMIT or ROLLBACK */
	bool is_counted; /* its first command was counted as a query */
	bool is_over; /* the process ends: no more commands */
	/* It has asked for the shutdown in progress: when it got the last notice of it; 0: no. */
	usec_t shutdown_notified;
	bool has_ended; /* the client closed its side, but `input` is not processed yet */
};

/*
 * Send an answer and free the buffer's memory. If the buffer has failed an error is sent
 * instead. Returns false if the client was closed.
 */
bool console_session_send(struct client_link *client, struct buffer *out);

/* How often a notice says how far a command is. */
#define CONSOLE_NOTICE_PERIOD (3 * USEC_PER_SEC)

/*
 * Send a notice while the client waits, or between two answers. May close the client. Nothing is
 * added to the backlog of a client that does not read.
 */
void console_session_notify(struct client_link *client, const char *text);

/* Append ReadyForQuery with the status of the client's transaction block. */
void console_session_write_ready(const struct client_link *client, struct buffer *out);

/* Send the answers of the extended protocol. Returns false if the client was closed. */
bool console_session_flush(struct console_session *session);

/* Run session->run at the end of this turn. */
void console_session_schedule(struct console_session *session);

/*
 * Read, or leave further commands in the kernel: while the client does not read its answers,
 * and while more commands have come than could be run.
 */
void console_session_read_or_pause(struct console_session *session);

/* Is the answer to a SHOW being built? Messages behind it wait. */
bool console_session_is_showing(const struct console_session *session);

#endif
