/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_oracle.h"

#include "support/messages/letters.h"
#include "support/simulation/sim_tokens.h"
#include "support/simulation/sim_trace.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/report.h"
#include "wire/writer.h"

/* --- the expected message ----------------------------------------------------------------- */

/* The next message of the client that the oracle has not handled. NULL if there is none. */
static const uint8_t *next_request(const struct sim_client *client, struct frame *frame)
{
	const uint8_t *next = client->requests.data + client->handled;
	const size_t left = client->requests.length - client->handled;

	return frame_peek(next, left, UINT32_MAX, frame) == FRAME_WHOLE ? next : NULL;
}

static void take_request(struct sim_client *client, size_t length)
{
	client->handled += length;
	if (client->handled < client->requests.length)
		return;
	buffer_clear(&client->requests);
	client->handled = 0;
}

/* The oracle handles the next message. Returns false when the client has sent no more. */
static bool handle_next(struct sim_client *client)
{
	struct frame frame;
	const uint8_t *message = next_request(client, &frame);

	if (!message)
		return false;
	sim_trace_message("oracle", client->number, "receives", message, frame.total);
	sim_postgres_handle(&client->oracle, (char)frame.type, frame_body(message),
		frame_body_size(&frame));
	take_request(client, frame.total);
	return true;
}

/* Runs the oracle until it has output. Returns false when there is none. */
static bool expect(struct sim_client *client)
{
	while (sim_postgres_output(&client->oracle) == 0) {
		if (client->oracle.stuck) {
			sim_postgres_go_on(&client->oracle, false);
			if (client->oracle.stuck && sim_postgres_output(&client->oracle) == 0)
				return false;
		} else if (!handle_next(client)) {
			return false;
		}
	}
	return true;
}

static const uint8_t *expected(const struct sim_client *client)
{
	return client->oracle.out.data + client->oracle.taken;
}

/* A printable form, for failure messages. */
static const char *show(const uint8_t *data, size_t length)
{
	static char texts[2][200];
	static unsigned turn;
	char *out = texts[turn++ % 2];
	size_t i;

	for (i = 0; i < length && i < sizeof(texts[0]) - 1; i++)
		out[i] = data[i] >= ' ' && data[i] < 127 ? (char)data[i] : '.';
	out[i] = '\0';
	return out;
}

/* In a failed transaction the pooler may answer a Parse: see doc/differences.md. */
static void allow_pooler_answer(struct sim_client *client, uint8_t type)
{
	if (type == PQ_PARSE_COMPLETE && expected(client)[0] == PQ_ERROR_RESPONSE)
		sim_postgres_accept_refused(&client->oracle);
}

static void compare(struct sim_client *client, const uint8_t *data, size_t total)
{
	if (!expect(client))
		fail_msg("client %u receives \"%s\" and has no request in flight",
			client->number, show(data, total));
	allow_pooler_answer(client, data[0]);
	if (sim_postgres_output(&client->oracle) < total ||
		memcmp(expected(client), data, total) != 0)
		fail_msg("client %u receives \"%s\" and not \"%s\"", client->number,
			show(data, total),
			show(expected(client), sim_postgres_output(&client->oracle)));
	sim_postgres_take(&client->oracle, total);
}

/* --- unsolicited messages ----------------------------------------------------------------- */

/* Exactly one notification, not mixed with another message. */
static bool is_notification(const uint8_t *message, size_t total)
{
	struct buffer wanted = {0};
	bool same;

	letters_write(&wanted, FROM_SERVER, "A");
	same = total == wanted.length && memcmp(message, wanted.data, total) == 0;
	buffer_free(&wanted);
	return same;
}

/* A notice of the pooler, or an unsolicited message of a server. */
static bool is_unsolicited(const uint8_t *message, size_t total)
{
	const char *name, *value;
	struct report report;

	switch (message[0]) {
	case PQ_NOTIFICATION_RESPONSE:
		return is_notification(message, total);
	case PQ_NOTICE_RESPONSE:
		report_parse(message + 5, total - 5, &report);
		return report.text &&
			(strcmp(report.text, "unasked") == 0 ||
				strncmp(report.text, "No server", 9) == 0);
	case PQ_PARAMETER_STATUS:
		return report_parse_parameter(message + 5, total - 5, &name, &value) &&
			strcmp(name, "application_name") != 0;
	}
	return false;
}

/* --- a query that was cancelled before it had a server ------------------------------------ */

static bool is_canceled_by_us(const uint8_t *message, size_t total)
{
	struct report report;

	if (message[0] != PQ_ERROR_RESPONSE)
		return false;
	report_parse(message + 5, total - 5, &report);
	return report.text &&
		strcmp(report.text, "canceling statement due to user request") == 0;
}

/* The oracle skips the query, as PostgreSQL does after an error. */
static void skip_next(struct sim_client *client)
{
	struct sim_postgres *oracle = &client->oracle;
	struct frame frame = {0};
	const uint8_t *message;

	while ((message = next_request(client, &frame)) != NULL && strchr("dcf", frame.type))
		take_request(client, frame.total);
	if (!message)
		fail_msg(
			"client %u was cancelled, without a request in flight", client->number);
	if (frame.type == PQ_QUERY || frame.type == PQ_FUNCTION_CALL || frame.type == PQ_SYNC) {
		sim_tokens_skip((char)frame.type, frame_body(message), frame_body_size(&frame));
		take_request(client, frame.total);
		writer_ready(&oracle->out, READY_IDLE);
	} else {
		oracle->extended = oracle->skipping = true;
	}
}

static void check_cancel(struct sim_client *client)
{
	const struct sim_postgres *oracle = &client->oracle;

	if (client->cancel_requests == 0)
		fail_msg("client %u was cancelled, without a request", client->number);
	if (sim_postgres_output(oracle) > 0 || oracle->stuck || oracle->skipping ||
		oracle->copy != SIM_NO_COPY || oracle->status != 'I')
		fail_msg("client %u was cancelled within a request", client->number);
	skip_next(client);
	client->awaits_copy = false;
}

/* The final error of this connection, from its server or from the pooler. */
static bool is_fatal(struct sim_client *client, const uint8_t *message, size_t total)
{
	struct report report;

	if (message[0] != PQ_ERROR_RESPONSE)
		return false;
	report_parse(message + 5, total - 5, &report);
	if (!report.severity || strcmp(report.severity, "FATAL") != 0)
		return false;
	snprintf(client->fatal, sizeof(client->fatal), "%s", report.sqlstate);
	if (strcmp(report.text, SIM_SHUTDOWN_ERROR) != 0)
		client->pooler_ended = true;
	client->server_ended = true;
	return true;
}

/* --- the welcome -------------------------------------------------------------------------- */

static void start_oracle(struct sim_client *client, const uint8_t *message, size_t total)
{
	const char *name, *value;

	assert_true(report_parse_parameter(message + 5, total - 5, &name, &value));
	if (strcmp(name, "application_name") == 0)
		sim_postgres_start(&client->oracle, false, value);
}

static void check_welcome(struct sim_client *client, const uint8_t *message, size_t total)
{
	switch (message[0]) {
	case PQ_AUTHENTICATION:
		sim_postgres_start(&client->oracle, false, "");
		break;
	case PQ_PARAMETER_STATUS:
		start_oracle(client, message, total);
		break;
	case PQ_BACKEND_KEY_DATA:
		assert_true(total - 5 <= sizeof(client->key));
		client->key_length = total - 5;
		memcpy(client->key, message + 5, total - 5);
		break;
	case PQ_READY_FOR_QUERY:
		assert_true(client->key_length >= 8);
		client->logged_in = true;
		break;
	default:
		fail_msg("client %u receives at its login \"%s\"", client->number,
			show(message, total));
	}
}

/* --- the client's state ------------------------------------------------------------------- */

static void note(struct sim_client *client, const uint8_t *message)
{
	switch (message[0]) {
	case PQ_READY_FOR_QUERY:
		assert_true(client->owed > 0);
		client->owed--;
		client->answers++;
		client->status = (char)message[5];
		break;
	case PQ_COPY_IN_RESPONSE:
		client->copies = client->awaits_copy;
		client->awaits_copy = false;
		break;
	case PQ_ERROR_RESPONSE:
		client->awaits_copy = client->copies = false;
		break;
	}
}

size_t sim_oracle_check(struct sim_client *client, const uint8_t *data, size_t available)
{
	struct frame frame;

	if (client->pooler_ended)
		fail_msg("client %u receives more after its FATAL error", client->number);
	if (frame_peek(data, available, UINT32_MAX, &frame) != FRAME_WHOLE)
		return 0;
	sim_trace_message("client", client->number, "receives", data, frame.total);
	if (is_fatal(client, data, frame.total))
		return frame.total;
	if (client->server_ended)
		fail_msg("client %u receives more after its server's FATAL error",
			client->number);
	if (!client->logged_in) {
		check_welcome(client, data, frame.total);
	} else if (is_canceled_by_us(data, frame.total)) {
		check_cancel(client);
	} else if (!is_unsolicited(data, frame.total)) {
		compare(client, data, frame.total);
		note(client, data);
	}
	return frame.total;
}

void sim_oracle_check_tail(struct sim_client *client, const uint8_t *data, size_t length)
{
	if (!client->logged_in || strchr("SNAE", data[0]))
		return;
	assert_true(expect(client));
	allow_pooler_answer(client, data[0]);
	if (sim_postgres_output(&client->oracle) < length ||
		memcmp(expected(client), data, length) != 0)
		fail_msg("client %u received last \"%s\" and not \"%s\"", client->number,
			show(data, length),
			show(expected(client), sim_postgres_output(&client->oracle)));
}

/* --- closing ------------------------------------------------------------------------------ */

/* Which FATAL error a client may receive for which cause; "" is none. */
static const struct {
	enum sim_close_cause cause;
	const char *fatal;
} endings[] = {
	{SIM_CLIENT_DISCONNECTED, ""},
	{SIM_SERVER_FAILED, "08006"},
	{SIM_SERVER_FAILED, "57P01"},
	{SIM_SERVER_FAILED, "08P01"},
	{SIM_SERVER_FAILED,
		"57014"}, /* its SETs were cancelled, and it is unknown what was run */
	{SIM_SERVER_FAILED, ""}, /* within a message */
	{SIM_NO_SERVER, "08P01"},
	{SIM_NO_SERVER, "08006"},
	{SIM_NO_SERVER, "57P03"},
	{SIM_KILLED, "57P01"},
	{SIM_KILLED, ""}, /* in the middle of a message */
	{SIM_WAITED, "57014"},
	{SIM_WAITED, "57P03"},
	{SIM_BEGAN_TRANSACTION, "08P01"},
};

void sim_oracle_check_close(const struct sim_client *client)
{
	if (client->reads_little && client->close_causes != 0 && client->fatal[0] == '\0')
		return;
	for (size_t i = 0; i < COUNT(endings); i++)
		if ((client->close_causes & endings[i].cause) != 0 &&
			strcmp(client->fatal, endings[i].fatal) == 0)
			return;
	fail_msg("client %u was closed with \"%s\", with the causes %x", client->number,
		client->fatal, client->close_causes);
}
