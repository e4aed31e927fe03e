/* SPDX-License-Identifier: ISC */
/*
 * How one pgusher asks another for its peer_id: a message without a letter, as a CancelRequest is,
 * on a connection of its own, and an answer of fixed length.
 *
 * The question has random bytes, by which a process recognizes its own question: the address it has
 * asked is its own. The answer has nothing but the peer_id. A PostgreSQL takes the question for a
 * protocol version that it does not support, a PgBouncer for a bad packet: both only refuse it.
 */
#ifndef PGUSHER_WIRE_PEER_QUESTION_H
#define PGUSHER_WIRE_PEER_QUESTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum {
	PEER_NONCE_SIZE = 16,
	PEER_ANSWER_SIZE = 12,
	PEER_ID_MAX = 16383, /* as for the setting peer_id */
};

void peer_question_write(struct buffer *buffer, const uint8_t nonce[PEER_NONCE_SIZE]);

/* Returns the random bytes of a whole question, inside of it; NULL: its length is wrong. */
const uint8_t *peer_question_nonce(const uint8_t *message, size_t total);

/* The id is from 1 to PEER_ID_MAX. */
void peer_answer_write(struct buffer *buffer, unsigned id);

/* Returns the id in these PEER_ANSWER_SIZE bytes; 0: they are no answer, or the id is invalid. */
unsigned peer_answer_read(const uint8_t answer[PEER_ANSWER_SIZE]);

#endif
