/* SPDX-License-Identifier: ISC */
#include "session/statements/statement_answers.h"

#include <string.h>

#include "wire/message.h"

/* Take the oldest request out, whose answer is ours; the message is the caller's to send. */
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

/* How many requests are in flight behind answers of ours that are due. */
static uint32_t count_owed(const struct server_link *server)
{
	const struct requests *requests = &server->requests;
	uint32_t ours = 0;

	while (ours < requests->count &&
		request_is(requests_at(requests, ours), REQUEST_ANSWER))
		ours++;
	return requests->count - ours;
}

bool statement_answers_send(struct server_link *server)
{
	struct client_link *client = client_of(server->link.peer);
	enum stream_sent sent = STREAM_SENT_ALL;

	/* Not into the middle of a message: relay.c does it behind that. */
	if (!statements_are_due(server) || count_owed(server) > 0 || server->link.remaining > 0)
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
	/* Whoever does not take his answers does not get to ask for more. */
	if (sent == STREAM_SENT_LATER)
		stream_pause(&client->link.stream);
	return sent != STREAM_SENT_NOT;
}
