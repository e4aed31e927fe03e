/* SPDX-License-Identifier: ISC */
/*
 * A PostgreSQL of few words behind a scripted server: it lets everybody in and answers in order.
 *
 *   begin, commit, rollback    change the status
 *   fail                       an ErrorResponse; a batch is skipped up to its Sync
 *   copy, copy bad             COPY FROM STDIN; the bad one fails at the first CopyData
 *   slow ...                   no answer before postgres_finish() or a CancelRequest
 *   SET name='value'; ...      a ParameterStatus for each; also between BEGIN; and COMMIT
 *   (nothing)                  EmptyQueryResponse
 *   anything else              one row with this very text in it
 */
#ifndef PGUSHER_TEST_FAKE_POSTGRES_H
#define PGUSHER_TEST_FAKE_POSTGRES_H

#include "support/fakes/fake_pool.h"

struct backend {
	uint8_t key[8]; /* its BackendKeyData */
	char status; /* of its next ReadyForQuery */
	bool extended; /* what runs was begun by an Execute */
	bool skipping; /* a batch has failed: nothing is answered before its Sync */
	bool copying, copy_is_bad;
	bool stuck; /* in a slow query */
	bool interrupted; /* the slow query was hit by a CancelRequest: an ErrorResponse is due */
	unsigned canceled; /* CancelRequests with its key, in time or not */
	char parsed[64], bound[64]; /* the text of the unnamed statement, and of the portal */
	char running[64]; /* the slow query */
};

/* The state behind this server. */
struct backend *postgres_backend(struct actor *server);

/* Append the answers to all that it was sent and has not answered yet. */
void postgres_answer(struct actor *server, struct buffer *out);

/* Append what is left to say to the slow query, which ends well. */
void postgres_finish(struct actor *server, struct buffer *out);

/* Answer, have all of that read, and end the turn, until nothing is left to be answered. */
void postgres_work(struct actor *server);

#endif
