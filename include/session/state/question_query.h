/* SPDX-License-Identifier: ISC */
/*
 * The text of the question that session/state/question asks a server: what its session has of the topics
 * that are suspected.
 *
 * The answer has rows of a letter, a name and a value. The letter of a topic is that of
 * question_query_topic(); `s` goes on with the value of the row before, and `V` is the value of a time
 * limit that was lifted for the question.
 */
#ifndef PGUSHER_SESSION_STATE_QUESTION_QUERY_H
#define PGUSHER_SESSION_STATE_QUESTION_QUERY_H

#include "model/client_link.h"
#include "model/server_link.h"

/*
 * Append the Query messages for server->suspected, and note each as a request in flight, with an answer
 * that is dropped. The client is the one that the server had. Returns false when out of memory: the
 * server is then of no use.
 */
bool question_query_write(
	struct server_link *server, const struct client_link *client, struct buffer *out);

/* Returns the topic that rows with this letter are about; 0: none. */
session_topics question_query_topic(char letter);

#endif
