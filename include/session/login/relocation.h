/* SPDX-License-Identifier: ISC */
/*
 * A connection that has said what it wants goes to the worker that has it: a client to the home of its
 * database (model/shared/directory), a CancelRequest to the worker of the client with its key, and
 * what concerns the console or peers to the first worker.
 *
 * It moves before its login begins, so nothing but the stream and a few facts of its acceptance move
 * along; there its message is handled as if it had just been received.
 */
#ifndef PGUSHER_SESSION_LOGIN_RELOCATION_H
#define PGUSHER_SESSION_LOGIN_RELOCATION_H

#include "model/registry.h"
#include "wire/startup.h"

/* How a client goes on at the other worker: functions of login/client_greeting, which stands above. */
struct relocation_end {
	const struct stream_handlers *handlers;
	/* Handle the bytes; may close the client. */
	void (*go_on)(struct client_link *client, const uint8_t *data, size_t length);
};

/*
 * The client has sent a first message of `total` bytes, without a type byte; `length` bytes have
 * been received with it. Returns true if the connection has left: for the worker that the message
 * concerns, or, if max_client_conn is reached, for a round past all workers, which may close
 * clients, to its home. The link here is closed then, and nothing is sent; out of memory the client
 * gets an error instead. Returns false if the message is to be handled here, as it is if the client
 * is not in GREETING. `end` must outlive the process's clients.
 */
bool relocation_begin(struct client_link *client, enum startup_kind kind,
	const uint8_t *message, size_t total, size_t length, const struct relocation_end *end);

#endif
