/* SPDX-License-Identifier: ISC */
/*
 * A small PostgreSQL behind a scripted server: it accepts every login and answers in order.
 *
 *   begin, commit, rollback    change the transaction status
 *   fail                       an ErrorResponse; a batch is skipped up to its Sync
 *   copy, copy bad             COPY FROM STDIN; the bad one fails at the first CopyData
 *   slow ...                   no answer before postgres_finish() or a CancelRequest
 *   SET name='value'; ...      a ParameterStatus for each; also between BEGIN; and COMMIT
 *   (nothing)                  EmptyQueryResponse
 *   anything else              one row with this text in it
 */
#ifndef PGUSHER_TEST_FAKE_POSTGRES_H
#define PGUSHER_TEST_FAKE_POSTGRES_H

#include "support/fakes/fake_pool.h"

struct backend {
	uint8_t key[8]; /* the key of its BackendKeyData */
	char status; /* of the next ReadyForQuery */
	bool extended; /* the running statement was started by an Execute */
	bool skipping; /* a batch has failed: messages are skipped up to its Sync */
	bool copying, copy_is_bad;
	bool stuck; /* in a slow query */
	bool interrupted; /* a CancelRequest arrived during the slow query: an ErrorResponse is due */
	unsigned canceled; /* number of CancelRequests with this key, in time or not */
	char parsed[64], bound[64]; /* the text of the unnamed statement, and of the portal */
	char running[64]; /* the slow query */
};

/* The state of this server. */
struct backend *postgres_backend(struct endpoint *server);

/* Appends the answers to all messages that the server received and has not answered yet. */
void postgres_answer(struct endpoint *server, struct buffer *out);

/* Ends the slow query successfully: appends the rest of its answer. */
void postgres_finish(struct endpoint *server, struct buffer *out);

/* Answers, has the answers read, and ends the turn, until no answer is left. */
void postgres_work(struct endpoint *server);

#endif
