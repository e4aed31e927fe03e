/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_oracle.h"

#include "support/messages/letters.h"
#include "support/simulation/sim_notes.h"
#include "support/simulation/sim_tokens.h"
#include "support/simulation/sim_trace.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/reader.h"
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

/*
 * Between two answers, or at the end of one: before its ReadyForQuery, and the ParameterStatus before
 * that.
 */
static bool may_hear(const struct sim_client *client)
{
	const uint8_t *next = expected(client);
	size_t left = sim_postgres_output(&client->oracle);
	struct frame frame = {0};

	while (left > 0 && *next == PQ_PARAMETER_STATUS) {
		assert_int_equal(frame_peek(next, left, UINT32_MAX, &frame), FRAME_WHOLE);
		next += frame.total;
		left -= frame.total;
	}
	return left == 0 || *next == PQ_READY_FOR_QUERY;
}

/* One of a client's channel. */
static bool is_note(struct sim_client *client, const uint8_t *message, size_t total)
{
	struct reader reader;
	const char *name, *payload;
	unsigned token;

	if (message[0] != PQ_NOTIFICATION_RESPONSE)
		return false;
	reader_init(&reader, message + 5, total - 5);
	reader_int32(&reader);
	name = reader_string(&reader);
	payload = reader_string(&reader);
	if (!payload || !reader_done(&reader) || name[0] != 'n' ||
		sscanf(payload, "t%u", &token) != 1)
		return false;
	if (!may_hear(client))
		fail_msg("client %u hears t%u within an answer, before \"%s\"", client->number,
			token, show(expected(client), sim_postgres_output(&client->oracle)));
	sim_notes_heard(client, sim_notes_bit(name, strlen(name)), token);
	return true;
}

/* The pooler tells that the server that listens was lost. */
static bool is_loss(struct sim_client *client, const uint8_t *message, size_t total)
{
	struct report report;

	if (message[0] != PQ_NOTICE_RESPONSE)
		return false;
	report_parse(message + 5, total - 5, &report);
	if (!report.text || !strstr(report.text, "notifications may be missing"))
		return false;
	sim_notes_warned(client);
	return true;
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

unsigned long long sim_oracle_refusals, sim_oracle_timeouts, sim_oracle_warnings;

/* A server could not stay with the client: what it had for that is gone. */
static bool is_lost_pin(struct sim_client *client, const uint8_t *message, size_t total)
{
	struct report report;

	if (message[0] != PQ_NOTICE_RESPONSE)
		return false;
	report_parse(message + 5, total - 5, &report);
	if (!report.text || !strstr(report.text, "will not be there in the next transaction"))
		return false;
	if (client->oracle.status != 'I' || sim_postgres_output(&client->oracle) > 0)
		fail_msg("client %u is warned within a request", client->number);
	sim_notes_warned(client);
	if (!client->oracle.settings.now.table && !client->oracle.settings.now.cursor &&
		!client->oracle.settings.lock && client->oracle.settings.now.channels == 0)
		fail_msg("client %u is warned, and has nothing to lose", client->number);
	sim_settings_drop_objects(&client->oracle.settings);
	sim_oracle_warnings++;
	return true;
}

/* --- a query that ended before it had a server -------------------------------------------- */

static const struct settings *settings(void)
{
	return fake_registry.process->settings;
}

bool sim_oracle_has_limits(void)
{
	return settings()->max_db_connections > 0 || settings()->max_user_connections > 0 ||
		settings()->max_server_connections > 0;
}

static bool was_cancelled(const struct sim_client *client)
{
	return client->cancel_requests > 0;
}

static bool was_refused(const struct sim_client *client)
{
	(void)client;
	sim_oracle_refusals++;
	return settings()->max_pool_waiters > 0;
}

static bool has_waited(const struct sim_client *client)
{
	sim_oracle_timeouts++;
	return client->has_waited && settings()->query_wait_timeout > 0 &&
		settings()->query_wait_timeout_action == WAIT_ACTION_ERROR;
}

static bool was_limited(const struct sim_client *client)
{
	return client->was_limited || sim_oracle_has_limits();
}

/* The pooler's own errors that end a query only, and when a client may receive them. */
static const struct own_error {
	const char *sqlstate, *text;
	bool (*may_be)(const struct sim_client *client);
} own_errors[] = {
	{"57014", "canceling statement due to user request", was_cancelled},
	{"53300", "too many clients wait for a server (max_pool_waiters)", was_refused},
	{"57014", "query_wait_timeout", has_waited},
	{"53300",
		"no server connection is left to listen: at most half of those that a limit "
		"allows may do so",
		was_limited},
};

/* Returns the error that the message is; NULL: it is another message. */
static const struct own_error *own_error_of(const uint8_t *message, size_t total)
{
	struct report report;

	if (message[0] != PQ_ERROR_RESPONSE)
		return NULL;
	report_parse(message + 5, total - 5, &report);
	for (size_t i = 0; report.text && i < COUNT(own_errors); i++)
		if (strcmp(report.text, own_errors[i].text) == 0) {
			assert_string_equal(report.severity, "ERROR");
			assert_string_equal(report.sqlstate, own_errors[i].sqlstate);
			return &own_errors[i];
		}
	return NULL;
}

/* The oracle skips the query, as PostgreSQL does after an error. */
static void skip_next(struct sim_client *client)
{
	struct sim_postgres *oracle = &client->oracle;
	struct frame frame = {0};
	const uint8_t *message;

	while ((message = next_request(client, &frame)) != NULL && strchr("dcfH", frame.type))
		take_request(client, frame.total);
	if (!message || frame.type == PQ_SYNC)
		fail_msg("client %u receives an error, without a query in flight",
			client->number);
	if (frame.type == PQ_QUERY || frame.type == PQ_FUNCTION_CALL) {
		sim_tokens_skip((char)frame.type, frame_body(message), frame_body_size(&frame));
		take_request(client, frame.total);
		writer_ready(&oracle->out, READY_IDLE);
	} else {
		oracle->extended = oracle->skipping = true;
	}
}

static void check_own_error(struct sim_client *client, const struct own_error *error)
{
	const struct sim_postgres *oracle = &client->oracle;

	if (!error->may_be(client))
		fail_msg("client %u receives \"%s\", without a reason", client->number,
			error->text);
	if (sim_postgres_output(oracle) > 0 || oracle->stuck || oracle->skipping ||
		oracle->copy != SIM_NO_COPY || oracle->status != 'I')
		fail_msg("client %u receives \"%s\" within a request", client->number,
			error->text);
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
		client->resets = false;
		client->answers++;
		client->status = (char)message[5];
		if (client->owed == 0 && client->status == 'I' && !client->batch)
			sim_notes_settled(client);
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
	const struct own_error *error;
	struct frame frame;

	if (client->pooler_ended)
		fail_msg("client %u receives more after its FATAL error", client->number);
	if (frame_peek(data, available, UINT32_MAX, &frame) != FRAME_WHOLE)
		return 0;
	sim_trace_message("client", client->number, "receives", data, frame.total);
	if (is_fatal(client, data, frame.total))
		return frame.total;
	/* The pooler may still answer a Parse or Close before it reads that the server is gone. */
	if (client->server_ended && data[0] != PQ_PARSE_COMPLETE &&
		data[0] != PQ_CLOSE_COMPLETE)
		fail_msg("client %u receives more after its server's FATAL error",
			client->number);
	if (!client->logged_in) {
		check_welcome(client, data, frame.total);
	} else if ((error = own_error_of(data, frame.total)) != NULL) {
		check_own_error(client, error);
	} else if (!is_note(client, data, frame.total) && !is_loss(client, data, frame.total) &&
		!is_lost_pin(client, data, frame.total) && !is_unsolicited(data, frame.total)) {
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
	{SIM_CLIENT_DISCONNECTED, ""}, {SIM_SERVER_FAILED, "08006"},
	{SIM_SERVER_FAILED, "57P01"}, {SIM_SERVER_FAILED, "08P01"},
	{SIM_SERVER_FAILED,
		"57014"}, /* its SETs were cancelled, and it is unknown what was run */
	{SIM_SERVER_FAILED, ""}, /* within a message */
	{SIM_NO_SERVER, "08P01"}, {SIM_NO_SERVER, "08006"}, {SIM_NO_SERVER, "57P03"},
	{SIM_KILLED, "57P01"}, {SIM_KILLED, "08006"}, /* with its server */
	{SIM_KILLED, ""}, /* in the middle of a message */
	{SIM_WAITED, "57014"}, {SIM_WAITED, "57P03"}, {SIM_BEGAN_TRANSACTION, "08P01"},
	{SIM_TOO_MANY, "53300"},
	{SIM_TOO_MANY, "57014"}, /* closed to make room, since it was silent */
};

/* A query of a client that has logged in ends its wait without the connection then. */
static bool waits_without_end(const struct sim_client *client)
{
	return client->logged_in && settings()->query_wait_timeout_action == WAIT_ACTION_ERROR;
}

void sim_oracle_check_close(const struct sim_client *client)
{
	if (client->reads_little && client->close_causes != 0 && client->fatal[0] == '\0')
		return;
	for (size_t i = 0; i < COUNT(endings); i++)
		if ((client->close_causes & endings[i].cause) != 0 &&
			strcmp(client->fatal, endings[i].fatal) == 0 &&
			!(endings[i].cause == SIM_WAITED && waits_without_end(client)))
			return;
	fail_msg("client %u was closed with \"%s\", with the causes %x", client->number,
		client->fatal, client->close_causes);
}
