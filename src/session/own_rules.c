/* SPDX-License-Identifier: ISC */
/* What the messages of a server mean that answers us, or that was asked nothing. */
#include <string.h>

#include "model/client_group.h"
#include "session/draining.h"
#include "session/followed.h"
#include "session/lookup_server.h"
#include "session/relay_rules.h"
#include "session/server_session.h"
#include "session/setting.h"
#include "session/statements.h"
#include "session/unrun.h"
#include "wire/message.h"
#include "wire/parameters.h"
#include "wire/reader.h"
#include "wire/report.h"

bool relay_remember_parameter(struct relay_run *run)
{
	struct registry *registry = link_registry(run->from);
	struct reader reader;
	size_t length;
	const uint8_t *body = relay_body(run, &length);
	const char *name, *value;
	int index;

	reader_init(&reader, body, length);
	name = reader_string(&reader);
	value = reader_string(&reader);
	if (reader.failed)
		return false;
	index = parameter_index(registry->parameters, name);
	if (index < 0)
		return run->server->setting || followed_note_status(run, name, value);
	if (!server_set_parameter(run->from, (unsigned)index, value))
		return false;
	if (!run->client || relay_keeps_reports(run->server))
		return true;
	if (!server_set_parameter(&run->client->link, (unsigned)index, value))
		return false;
	client_group_join(run->client);
	return true;
}

/* --- what others need as well ------------------------------------------------------------- */

/* --- from a server that answers us -------------------------------------------------------- */

static enum verdict judge_own_answer(struct relay_run *run)
{
	(void)run;
	return RELAY_DROP;
}

static enum verdict judge_own_parameter(struct relay_run *run)
{
	if (!run->whole || !relay_remember_parameter(run))
		return relay_fail(run, failure_of(REASON_BROKEN_PARAMETER_STATUS));
	return RELAY_DROP;
}

/* A reset query, say; connect_query comes before anything is followed. */
static enum verdict judge_own_command(struct relay_run *run)
{
	if (parameters_has_followed(run->from->parameters) && !followed_note_command(run))
		return relay_fail(run, failure_of(REASON_NO_MEMORY));
	/* Our reset query may well be DISCARD ALL. */
	if (relay_forgets_all(run))
		statements_forget_all(run->server, NULL);
	return RELAY_DROP;
}

static enum verdict judge_own_error(struct relay_run *run)
{
	size_t length;

	if (run->whole) {
		const uint8_t *body = relay_body(run, &length);

		server_own_error(run->server, body, length);
	}
	return RELAY_DROP;
}

/* What comes behind the end of our own query was not asked for. */
static enum verdict end_own(struct relay_run *run, char status)
{
	requests_clear(&run->server->requests);
	run->server->transaction_status = status;
	run->own_done = true;
	run->from->rules = relay_unused_server;
	return RELAY_DROP;
}

/* The status that a ReadyForQuery tells; 0: none. */
static char status_of(const struct relay_run *run)
{
	size_t length;
	const uint8_t *status = relay_body(run, &length);

	return length == 1 && relay_is_status(*status) ? (char)*status : 0;
}

static enum verdict judge_own_ready(struct relay_run *run)
{
	const char status = status_of(run);

	return status ? end_own(run, status)
		      : relay_fail(run, failure_of(REASON_BAD_PKT_HEADER));
}

/* --- from a server that runs our SETs ----------------------------------------------------- */

/* Class 57 is the operator's: the server ends, whatever we ask of it. */
static bool is_last_word(const struct report *report)
{
	return report->sqlstate && strncmp(report->sqlstate, "57P", 3) == 0;
}

static bool is_canceled(const struct report *report)
{
	return report->sqlstate && strcmp(report->sqlstate, "57014") == 0;
}

/* Why the server is of no use to this client. */
static enum reason reason_of_refusal(const struct server_link *server)
{
	/* It may have been a RESET, of what is none of this client's. */
	return !server->gathered && parameters_has_followed(server->link.parameters)
		? REASON_RESET_QUERY_FAILED
		: REASON_INVALID_SERVER_PARAMETER;
}

static enum verdict judge_set_error(struct relay_run *run)
{
	struct server_link *server = run->server;
	struct report report = {0};
	size_t length;
	const uint8_t *body = relay_body(run, &length);

	if (run->whole)
		report_parse(body, length, &report);
	if (is_last_word(&report)) {
		/* Its session has ended before it came to anything else. */
		setting_take_back(server);
		return relay_fail(run, failure_of(REASON_SERVER_CONN_CRASHED));
	}
	judge_own_error(run);
	if (!is_canceled(&report))
		return relay_fail(run, failure_of(reason_of_refusal(server)));
	server->request_failed = true;
	return RELAY_DROP;
}

/* Somebody has cancelled them: it is the client's query that he meant. */
static enum verdict end_canceled(struct relay_run *run, char status)
{
	struct server_link *server = run->server;

	if (status == READY_FAILED_TRANSACTION && run->client &&
		unrun_is_certain(run->client, &server->kept))
		setting_take_back(server);
	return relay_fail(run, failure_of(REASON_SETTING_CANCELED));
}

/* What the server says from here on answers what went with our SETs. */
static enum verdict end_gathered(struct relay_run *run)
{
	struct server_link *server = run->server;

	requests_drop(&server->requests);
	server->setting = server->gathered = false;
	if (requests_is_empty(&server->requests)) {
		server->transaction_status = READY_IDLE;
		run->quiet = run->at + run->frame.total;
	}
	if (server->link.state == SERVER_DRAINING) {
		if (!draining_set_out(server))
			return relay_fail(run, failure_of(REASON_CLIENT_DISCONNECT_NOT_READY));
	} else {
		if (!setting_adopt(run->client, server))
			return relay_fail(run, failure_of(REASON_NO_MEMORY));
		server->link.rules = relay_paired_server;
		/* It is read on when this run is over, or the server has taken what it was sent. */
		if (!stream_is_blocked(&server->link.stream))
			run->client->ring_full = true;
	}
	if (!statements_are_due(server))
		return RELAY_DROP;
	relay_step_over(run, RELAY_DROP);
	statements_answer(run);
	return RELAY_AGAIN;
}

/* Those that go alone may be two queries, of which the last one counts. */
static enum verdict judge_set_ready(struct relay_run *run)
{
	struct server_link *server = run->server;
	const char status = status_of(run);

	if (!status)
		return relay_fail(run, failure_of(REASON_BAD_PKT_HEADER));
	if (server->request_failed)
		return end_canceled(run, status);
	if (server->gathered)
		return status == READY_IDLE
			? end_gathered(run)
			: relay_fail(run, failure_of(REASON_INVALID_SERVER_PARAMETER));
	if (server->requests.count <= 1 || status != READY_IDLE)
		return end_own(run, status);
	requests_drop(&server->requests);
	return RELAY_DROP;
}

/* --- from a server that runs a look-up ---------------------------------------------------- */

/* One that is too long to be whole is longer than any secret. */
static enum verdict judge_looked_up(struct relay_run *run)
{
	enum reason why = run->server->lookup->kind->broken;
	size_t length;
	const uint8_t *body = relay_body(run, &length);
	enum lookup_progress progress = LOOKUP_BREAKS;

	if (relay_forgets_all(run))
		statements_forget_all(run->server, NULL);
	if (run->whole)
		progress = lookup_answer(run->server, run->frame.type, body, length, &why);
	switch (progress) {
	case LOOKUP_GOES_ON:
		return RELAY_DROP;
	case LOOKUP_ENDS:
		return end_own(run, READY_IDLE);
	case LOOKUP_BREAKS:
		break;
	}
	return relay_fail(run, failure_of(why));
}

/* --- from a server that was asked nothing ------------------------------------------------- */

static enum verdict judge_unused(struct relay_run *run)
{
	const uint8_t type = run->frame.type;

	if (!run->server->dirty)
		link_log_repeated(run->from, LEVEL_WARNING,
			"got packet '%c' from server when not linked",
			type >= ' ' && type < 127 ? type : '?');
	run->server->dirty = true;
	return RELAY_DROP;
}

static enum verdict judge_unused_notification(struct relay_run *run)
{
	(void)run;
	return RELAY_DROP;
}

/* --- the tables --------------------------------------------------------------------------- */

/*
 * Each table says first what all types mean and then which of them mean something else, so the
 * later initializer of the same element is the one that is meant.
 */
#pragma GCC diagnostic ignored "-Woverride-init"

const struct relay_rule relay_setting_server[RELAY_TYPES] = {
	RELAY_EVERY(judge_own_answer),
	[PQ_ERROR_RESPONSE] = {judge_set_error, .whole = true},
	[PQ_PARAMETER_STATUS] = {judge_own_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_set_ready, .whole = true},
};

const struct relay_rule relay_own_server[RELAY_TYPES] = {
	RELAY_EVERY(judge_own_answer),
	[PQ_COMMAND_COMPLETE] = {judge_own_command, .whole = true},
	[PQ_ERROR_RESPONSE] = {judge_own_error, .whole = true},
	[PQ_PARAMETER_STATUS] = {judge_own_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_own_ready, .whole = true},
};

const struct relay_rule relay_lookup_server[RELAY_TYPES] = {
	[0 ... RELAY_TYPES - 1] = {judge_looked_up, .whole = true},
	[PQ_NOTICE_RESPONSE] = {judge_own_answer},
	[PQ_NOTIFICATION_RESPONSE] = {judge_own_answer},
	[PQ_PARAMETER_STATUS] = {judge_own_parameter, .whole = true},
};

const struct relay_rule relay_unused_server[RELAY_TYPES] = {
	RELAY_EVERY(judge_unused),
	[PQ_NOTIFICATION_RESPONSE] = {judge_unused_notification},
};
