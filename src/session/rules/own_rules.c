/* SPDX-License-Identifier: ISC */
/* Judges the messages of servers that run a query of our own, or none. */
#include <string.h>

#include "model/statements_in_flight.h"
#include "model/statistics/client_group.h"
#include "session/lookup/lookup_server.h"
#include "session/notify/delivery.h"
#include "session/parameters/followed.h"
#include "session/relay/own_query.h"
#include "session/relay/relay_rules.h"
#include "session/rules/restore.h"
#include "session/server/host_report.h"
#include "wire/message.h"
#include "wire/parameters.h"
#include "wire/report.h"

/*
 * Store a reported value for the server and its client. later: the client does not get the
 * report now, so its value does not change. Returns false when out of memory.
 */
static bool store_parameter(
	const struct relay_run *run, const char *name, const char *value, bool later)
{
	const int index = parameter_index(link_registry(run->from)->parameters, name);

	if (index < 0)
		return server_is_syncing(run->server) ||
			followed_note_status(run, name, value, later);
	if (!link_set_parameter(run->from, (unsigned)index, value))
		return false;
	/* Other servers of the pool may be of a version that does not report it. */
	if (!server_is_syncing(run->server) && !followed_note_status(run, name, value, later))
		return false;
	if (!run->client || later)
		return true;
	if (!link_set_parameter(&run->client->link, (unsigned)index, value))
		return false;
	client_group_join(run->client);
	return true;
}

enum verdict relay_remember_parameter(struct relay_run *run)
{
	size_t length;
	const uint8_t *body = relay_body(run, &length);
	const char *name, *value;
	bool later;

	if (!run->whole || !report_parse_parameter(body, length, &name, &value))
		return relay_fail(run, failure_of(REASON_BROKEN_PARAMETER_STATUS));
	host_report_changed(run->server, name, value);
	if (run->server->link.state == SERVER_CLOSED)
		return RELAY_STOP;
	later = server_is_syncing(run->server) || restore_withholds_report(run, name);
	if (!store_parameter(run, name, value, later))
		return relay_fail(run, failure_of(REASON_BROKEN_PARAMETER_STATUS));
	return later ? RELAY_DROP : RELAY_PASS;
}

/* --- from a server that runs a query of our own ------------------------------------------- */

enum verdict relay_drop_own(struct relay_run *run)
{
	(void)run;
	return RELAY_DROP;
}

enum verdict relay_judge_own_parameter(struct relay_run *run)
{
	return relay_remember_parameter(run) == RELAY_STOP ? RELAY_STOP : RELAY_DROP;
}

/* Reset queries may change followed parameters; connect_query runs before any is followed. */
static enum verdict judge_own_command(struct relay_run *run)
{
	if (parameters_has_followed(run->from->parameters) && !followed_note_command(run))
		return relay_fail(run, failure_of(REASON_NO_MEMORY));
	/* The reset query may be DISCARD ALL. */
	if (relay_has_tag(run, "DISCARD ALL"))
		run->server->altered = false;
	if (relay_forgets_all(run))
		statements_forget_all(run->server, NULL);
	return RELAY_DROP;
}

static enum verdict judge_own_error(struct relay_run *run)
{
	size_t length;

	if (run->whole) {
		const uint8_t *body = relay_body(run, &length);

		own_query_error(run->server, body, length);
	}
	return RELAY_DROP;
}

enum verdict relay_end_own(struct relay_run *run, char status)
{
	requests_clear(&run->server->requests);
	run->server->transaction_status = status;
	run->own_done = true;
	server_set_task(run->server,
		server_is_syncing(run->server) ? SERVER_TASK_SYNC_ENDED : SERVER_TASK_ENDED);
	return RELAY_DROP;
}

char relay_ready_status(const struct relay_run *run)
{
	size_t length;
	const uint8_t *status = relay_body(run, &length);

	return length == 1 && relay_is_status(*status) ? (char)*status : 0;
}

static enum verdict judge_own_ready(struct relay_run *run)
{
	const char status = relay_ready_status(run);

	return status ? relay_end_own(run, status)
		      : relay_fail(run, failure_of(REASON_BAD_PKT_HEADER));
}

/* --- from a server that runs a look-up ---------------------------------------------------- */

/* A message that is too long to be whole is longer than any secret. */
static enum verdict judge_lookup(struct relay_run *run)
{
	enum reason why = run->server->lookup->kind->broken;
	size_t length;
	const uint8_t *body = relay_body(run, &length);
	enum lookup_progress progress = LOOKUP_FAILED;

	if (relay_forgets_all(run))
		statements_forget_all(run->server, NULL);
	if (run->whole)
		progress = lookup_answer(run->server, run->frame.type, body, length, &why);
	switch (progress) {
	case LOOKUP_CONTINUES:
		return RELAY_DROP;
	case LOOKUP_IS_DONE:
		return relay_end_own(run, READY_IDLE);
	case LOOKUP_FAILED:
		break;
	}
	return relay_fail(run, failure_of(why));
}

/* --- from a server without requests ------------------------------------------------------- */

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

/* --- the tables --------------------------------------------------------------------------- */

/* In each table the first row is the default, which later initializers override. */
#pragma GCC diagnostic ignored "-Woverride-init"

const struct relay_rule relay_own_server[RELAY_TYPES] = {
	RELAY_EVERY(relay_drop_own),
	[PQ_COMMAND_COMPLETE] = {judge_own_command, .whole = true},
	[PQ_ERROR_RESPONSE] = {judge_own_error, .whole = true},
	[PQ_PARAMETER_STATUS] = {relay_judge_own_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_own_ready, .whole = true},
};

const struct relay_rule relay_lookup_server[RELAY_TYPES] = {
	[0 ... RELAY_TYPES - 1] = {judge_lookup, .whole = true},
	[PQ_NOTICE_RESPONSE] = {relay_drop_own},
	[PQ_NOTIFICATION_RESPONSE] = {relay_drop_own},
	[PQ_PARAMETER_STATUS] = {relay_judge_own_parameter, .whole = true},
};

const struct relay_rule relay_unused_server[RELAY_TYPES] = {
	RELAY_EVERY(judge_unused),
	/* It may be for the client that a question was about, which has ended in this run. */
	[PQ_NOTIFICATION_RESPONSE] = {delivery_judge_asked, .whole = true},
};
