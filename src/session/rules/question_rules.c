/* SPDX-License-Identifier: ISC */
/* Judges the answer to a question, and what its client sends meanwhile: see state/question. */
#include <string.h>

#include "session/notify/delivery.h"
#include "session/relay/relay_rules.h"
#include "session/server/host_capacity.h"
#include "session/server/host_probe.h"
#include "session/state/functions.h"
#include "wire/message.h"
#include "wire/parameters.h"
#include "wire/report.h"
#include "wire/row.h"

/* Longest answer that is kept: a set of parameters cannot have more. */
enum { ANSWER_MAX = PARAMETERS_SIZE_MAX };

/* PostgreSQL's texts have no NUL, which ends them in the answer that is kept. */
static bool has_nul(const struct row_value *value)
{
	return memchr(value->data, '\0', value->length) != NULL;
}

/* Append the value; a piece of one follows the piece before it. */
static void keep(struct server_link *server, const struct row_value values[3])
{
	const bool is_piece = *values[0].data == 's';
	struct buffer *answer = &server->kept;

	if (answer->length + values[1].length + values[2].length > ANSWER_MAX)
		server->too_large = true;
	if (server->too_large || (is_piece && answer->length == 0) || has_nul(&values[1]) ||
		has_nul(&values[2])) {
		answer->failed = true;
		return;
	}
	if (is_piece)
		answer->length--; /* the NUL */
	for (int i = is_piece ? 2 : 0; i < 3; i++) {
		buffer_append(answer, values[i].data, values[i].length);
		buffer_append(answer, "", 1);
	}
}

/*
 * Keep the letter, the name and the value, each with a NUL. A value of NULL is none. The row of a
 * time limit has what was set instead in addition.
 */
static enum verdict judge_row(struct relay_run *run)
{
	struct buffer *answer = &run->server->kept;
	struct row_value values[4];
	int columns;
	size_t length;
	const uint8_t *body;

	if (!run->whole) {
		answer->failed = true;
		return RELAY_DROP;
	}
	body = relay_body(run, &length);
	columns = row_read(body, length, values, 4);
	if ((columns != 3 && columns != 4) || !values[0].data || values[0].length != 1 ||
		!values[1].data) {
		answer->failed = true;
		return RELAY_DROP;
	}
	if (values[2].data)
		keep(run->server, values);
	return RELAY_DROP;
}

static enum verdict judge_error(struct relay_run *run)
{
	struct server_link *server = run->server;
	struct report report = {0};
	size_t length;
	const uint8_t *body = relay_body(run, &length);

	if (run->whole)
		report_parse(body, length, &report);
	/* The query behind it is refused for that error. */
	if (!server->kept.failed)
		server->times_out = report_is_time_limit(&report);
	server->kept.failed = true;
	return RELAY_DROP;
}

static enum verdict judge_ready(struct relay_run *run)
{
	const char status = relay_ready_status(run);

	if (!status)
		return relay_fail(run, failure_of(REASON_BAD_PKT_HEADER));
	if (run->server->requests.count <= 1)
		return relay_end_own(run, status);
	requests_drop(&run->server->requests);
	return RELAY_DROP;
}

/* --- functions ----------------------------------------------------------------------------- */

static enum verdict judge_function(struct relay_run *run)
{
	struct row_value values[3];
	size_t length;
	const uint8_t *body = relay_body(run, &length);

	if (!run->whole)
		run->server->kept.failed = true;
	else if (row_read(body, length, values, 3) == 3)
		functions_take_row(run->server, values);
	else
		functions_not_read(run->server);
	return RELAY_DROP;
}

static enum verdict judge_functions_error(struct relay_run *run)
{
	struct report report = {0};
	size_t length;
	const uint8_t *body = relay_body(run, &length);

	if (run->whole)
		report_parse(body, length, &report);
	functions_refused(run->server, &report);
	return RELAY_DROP;
}

/* --- the role of a host --------------------------------------------------------------------- */

static enum verdict judge_role(struct relay_run *run)
{
	struct row_value values[HOST_PROBE_COLUMNS] = {0};
	size_t length;
	const uint8_t *body = relay_body(run, &length);

	if (run->whole)
		host_probe_take_row(run->server,
			row_read(body, length, values, HOST_PROBE_COLUMNS), values);
	return run->server->link.state == SERVER_CLOSED ? RELAY_STOP : RELAY_DROP;
}

static enum verdict judge_role_error(struct relay_run *run)
{
	struct report report = {0};
	size_t length;
	const uint8_t *body = relay_body(run, &length);

	if (run->whole)
		report_parse(body, length, &report);
	host_probe_refused(run->server, &report);
	return RELAY_DROP;
}

/* --- what a host has ------------------------------------------------------------------------ */

static enum verdict judge_capacity(struct relay_run *run)
{
	struct row_value values[HOST_CAPACITY_COLUMNS] = {0};
	size_t length;
	const uint8_t *body = relay_body(run, &length);

	if (run->whole)
		host_capacity_take_row(run->server,
			row_read(body, length, values, HOST_CAPACITY_COLUMNS), values);
	return RELAY_DROP;
}

static enum verdict judge_capacity_error(struct relay_run *run)
{
	struct report report = {0};
	size_t length;
	const uint8_t *body = relay_body(run, &length);

	if (run->whole)
		report_parse(body, length, &report);
	host_capacity_refused(run->server, &report);
	return RELAY_DROP;
}

/* --- the tables --------------------------------------------------------------------------- */

#pragma GCC diagnostic ignored "-Woverride-init"

const struct relay_rule relay_asked_server[RELAY_TYPES] = {
	RELAY_EVERY(relay_drop_own),
	[PQ_NOTIFICATION_RESPONSE] = {delivery_judge_asked, .whole = true},
	[PQ_DATA_ROW] = {judge_row, .whole = true},
	[PQ_ERROR_RESPONSE] = {judge_error, .whole = true},
	[PQ_PARAMETER_STATUS] = {relay_judge_own_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_ready, .whole = true},
};

const struct relay_rule relay_functions_server[RELAY_TYPES] = {
	RELAY_EVERY(relay_drop_own),
	[PQ_DATA_ROW] = {judge_function, .whole = true},
	[PQ_ERROR_RESPONSE] = {judge_functions_error, .whole = true},
	[PQ_PARAMETER_STATUS] = {relay_judge_own_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_ready, .whole = true},
};

const struct relay_rule relay_probed_server[RELAY_TYPES] = {
	RELAY_EVERY(relay_drop_own),
	[PQ_DATA_ROW] = {judge_role, .whole = true},
	[PQ_ERROR_RESPONSE] = {judge_role_error, .whole = true},
	[PQ_PARAMETER_STATUS] = {relay_judge_own_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_ready, .whole = true},
};

const struct relay_rule relay_capacity_server[RELAY_TYPES] = {
	RELAY_EVERY(relay_drop_own),
	[PQ_DATA_ROW] = {judge_capacity, .whole = true},
	[PQ_ERROR_RESPONSE] = {judge_capacity_error, .whole = true},
	[PQ_PARAMETER_STATUS] = {relay_judge_own_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_ready, .whole = true},
};

/* The messages of a client whose last server is being asked. */
static enum verdict judge_while_asked(struct relay_run *run)
{
	(void)run;
	return RELAY_HOLD;
}

const struct relay_rule relay_asked_client[RELAY_TYPES] = {
	RELAY_EVERY(judge_while_asked),
};
