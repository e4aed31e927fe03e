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
 * The client, which is in GREETING, has sent this message, without a type byte, with other bytes
 * behind it: `length` in all. Returns true if it belongs to another worker, and has left; the client is
 * closed then, without a word. False: handle the message here. `end` is kept.
 */
bool relocation_begin(struct client_link *client, enum startup_kind kind,
	const uint8_t *message, size_t total, size_t length, const struct relocation_end *end);

#endif
