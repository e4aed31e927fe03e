/* SPDX-License-Identifier: ISC */
/*
 * Streams without a socket: the test supplies what they receive, and reads what they send.
 *
 * The loop does not know them. The test triggers the events with scripted_run() and
 * scripted_allow(), so that each interleaving can be written down and repeated.
 */
#ifndef PGUSHER_TEST_SCRIPTED_STREAM_H
#define PGUSHER_TEST_SCRIPTED_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/stream.h"

/* For scripted_allow(): no limit. */
#define SCRIPTED_ANY SIZE_MAX

struct script;

/*
 * Makes the stream an open scripted one that accepts whatever is sent. The script remains
 * readable after the stream was closed; the caller frees it.
 */
struct script *scripted_open(
	struct stream *stream, struct loop *loop, const struct stream_handlers *handlers);

/* As stream_connect(): scripted_connected() ends the connect. */
struct script *scripted_connect(
	struct stream *stream, struct loop *loop, const struct stream_handlers *handlers);

/* Closes the stream if it is still open, and frees the script. */
void scripted_free(struct script *script);

/* The script of an open scripted stream; NULL if the stream is of another kind. */
struct script *scripted_of(const struct stream *stream);

/* The stream of the script was moved to this address: see stream_leave(). */
void scripted_moved(struct script *script, struct stream *stream);

/* Calls the handler: the connect has ended with this errno, 0 for success. */
void scripted_connected(struct script *script, int error);

/* Appends bytes to what the stream will receive. Calls no handler. */
void scripted_feed(struct script *script, const void *data, size_t length);

/* After the supplied bytes the peer closes its side, or the connection breaks. */
void scripted_end(struct script *script);
void scripted_break(struct script *script);

/*
 * Triggers one readable event if a loop would: the stream is open and not paused, and there is
 * something to receive. If it is paused and the script has ended, calls the hang-up handler,
 * once. Returns false when there is no event.
 */
bool scripted_run(struct script *script);

/* scripted_run() until there is no event. */
void scripted_run_all(struct script *script);

/* Accepts so many bytes more from now on, and writes a backlog that far. */
void scripted_allow(struct script *script, size_t room);

/* Everything sent so far; valid until more is sent. scripted_forget_output() discards it. */
const uint8_t *scripted_output(const struct script *script, size_t *length);
void scripted_forget_output(struct script *script);

/* The number of send calls, each of any number of pieces. */
size_t scripted_sends(const struct script *script);

/* The number of bytes supplied and not received yet. */
size_t scripted_unread(const struct script *script);

/* Was the stream closed? */
bool scripted_is_closed(const struct script *script);

#endif
