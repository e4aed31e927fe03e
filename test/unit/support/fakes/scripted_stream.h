/* SPDX-License-Identifier: ISC */
/*
 * Streams without a socket: what they receive is fed by the test, what they send is kept for it.
 *
 * The loop knows nothing of them: the test plays the events with scripted_run() and
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
 * Make the stream an open scripted one that takes whatever is sent. The script stays readable
 * after the stream was closed, and is the test's to free.
 */
struct script *scripted_open(
	struct stream *stream, struct loop *loop, const struct stream_handlers *handlers);

/* As stream_connect(): scripted_connected() ends it. */
struct script *scripted_connect(
	struct stream *stream, struct loop *loop, const struct stream_handlers *handlers);

/* Close the stream if it is still open, and free the script. */
void scripted_free(struct script *script);

/* The script of an open scripted stream; NULL: it is none. */
struct script *scripted_of(const struct stream *stream);

/* The connect has ended with this errno, 0 for success: tells the handlers. */
void scripted_connected(struct script *script, int error);

/* Bytes that the stream will receive, after those fed before. Handlers are not told. */
void scripted_feed(struct script *script, const void *data, size_t length);

/* After what was fed the peer has closed its side, or the connection is broken. */
void scripted_end(struct script *script);
void scripted_break(struct script *script);

/*
 * Play one readable event if a loop would: the stream is open and not paused, and there is
 * something to receive. If it is paused and an end stands in the script, the handlers hear of
 * the hang-up, once. False: nothing to be told.
 */
bool scripted_run(struct script *script);

/* scripted_run() until it has nothing more to tell. */
void scripted_run_all(struct script *script);

/* Take so many bytes more from now on; a backlog is written as far as that goes. */
void scripted_allow(struct script *script, size_t room);

/* Everything sent so far; valid until more is sent. Forgetting starts anew. */
const uint8_t *scripted_output(const struct script *script, size_t *length);
void scripted_forget_output(struct script *script);

/* How often something was sent, in however many pieces. */
size_t scripted_sends(const struct script *script);

/* How many bytes were fed and not received yet. */
size_t scripted_unread(const struct script *script);

/* Was the stream closed? */
bool scripted_is_closed(const struct script *script);

#endif
