/* SPDX-License-Identifier: ISC */
#include "session/statements/statement_answers.h"

#include <string.h>

#include "wire/message.h"

/* Remove the oldest request, which pgusher answers. Returns the message type of the answer. */
static uint8_t take_answer(struct server_link *server)
{
	const uint8_t type = requests_first(&server->requests)->type;

	requests_drop(&server->requests);
	statements_done(server);
	return type == PQ_PARSE ? PQ_PARSE_COMPLETE : PQ_CLOSE_COMPLETE;
}

void statement_answers_insert(struct relay_run *run)
{
	while (statements_are_due(run->server)) {
		const uint8_t message[] = {take_answer(run->server), 0, 0, 0, 4};

		relay_insert(run, message, sizeof(message));
	}
}

/* Returns the number of requests in flight after those that pgusher answers now. */
static uint32_t count_behind(const struct server_link *server)
{
	const struct requests *requests = &server->requests;
	uint32_t due = 0;

	while (due < requests->count && request_is(requests_at(requests, due), REQUEST_ANSWER))
		due++;
	return requests->count - due;
}

bool statement_answers_send(struct server_link *server)
{
	struct client_link *client = client_of(server->link.peer);
	enum stream_sent sent = STREAM_SENT_ALL;

	/* Not in the middle of a message: the server's next run inserts them after it. */
	if (!statements_are_due(server) || count_behind(server) > 0 ||
		server->link.remaining > 0)
		return true;
	while (statements_are_due(server) && sent != STREAM_SENT_NOT) {
		uint8_t messages[64 * FRAME_HEADER_SIZE];
		size_t length = 0;

		while (statements_are_due(server) && length < sizeof(messages)) {
			memcpy(messages + length, (uint8_t[]){take_answer(server), 0, 0, 0, 4},
				FRAME_HEADER_SIZE);
			length += FRAME_HEADER_SIZE;
		}
		sent = stream_send_bytes(&client->link.stream, messages, length);
	}
	/* A client that does not read its answers must not send more requests. */
	if (sent == STREAM_SENT_LATER)
		stream_pause(&client->link.stream);
	return sent != STREAM_SENT_NOT;
}
