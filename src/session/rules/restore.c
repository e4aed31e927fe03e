/* SPDX-License-Identifier: ISC */
#include "session/rules/restore.h"

#include <string.h>
#include <strings.h>

#include "model/statistics/client_group.h"
#include "session/notify/delivery.h"
#include "session/parameters/restore_query.h"
#include "session/parameters/welcome_message.h"
#include "session/relay/relay_rules.h"
#include "wire/message.h"
#include "wire/parameter_values.h"
#include "wire/report.h"
#include "wire/writer.h"

/* How often our query is sent: again if a late cancel request has hit it. */
enum { RESTORE_ATTEMPTS = 2 };

/* --- what has to be restored -------------------------------------------------------------- */

void restore_note_text(const struct relay_run *run, const char *text, size_t length)
{
	static const char word[] = "default";

	if (!run->client->asked)
		return;
	for (; length >= sizeof(word) - 1 && *text != '\0'; text++, length--) {
		if (strncasecmp(text, word, sizeof(word) - 1) == 0) {
			run->server->sets_default = true;
			return;
		}
	}
}

/* Does the tag say that parameters may have been reset? */
static bool resets(const struct relay_run *run)
{
	return relay_has_tag(run, "RESET") || relay_has_tag(run, "DISCARD ALL") ||
		(run->server->sets_default && relay_has_tag(run, "SET"));
}

void restore_note_command(const struct relay_run *run)
{
	struct server_link *server = run->server;

	if (!run->client || !run->client->asked || server->task != SERVER_TASK_NONE ||
		!resets(run))
		return;
	server->sets_default = false;
	server->restores = RESTORE_ATTEMPTS;
	server_set_task(server, SERVER_TASK_WATCH_RESET);
}

/* Reports of other parameters are passed on in the order of the server. */
bool restore_withholds_report(const struct relay_run *run, const char *name)
{
	const enum server_task task = run->server->task;
	const struct parameters *asked = run->client ? run->client->asked : NULL;
	int index;

	if (!asked || (task != SERVER_TASK_WATCH_RESET && task != SERVER_TASK_RESTORE))
		return false;
	index = parameter_index(parameters_table(asked), name);
	return index >= 0 ? parameters_get(asked, (unsigned)index) != NULL
			  : parameters_get_followed(asked, name) != NULL;
}

static bool tracked_has_changed(const struct parameter_values *asked,
	const struct parameter_values *present, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (asked->tracked[i] && present->tracked[i] &&
			strcmp(asked->tracked[i], present->tracked[i]) != 0)
			return true;
	}
	return false;
}

/* Returns true if the set has another value for this parameter. */
static bool has_other_value(const struct parameters *set, const struct followed *asked)
{
	const char *value = parameters_get_followed(set, asked->name);

	return value && strcmp(value, asked->value) != 0;
}

/*
 * Outside of session mode, our SETs before the next transaction restore followed parameters.
 * This does not work for values that the server has reported differently, since these have
 * replaced the startup values in the set of the client.
 */
static bool followed_has_changed(
	const struct server_link *server, const struct parameter_values *asked)
{
	const struct link *client = server->link.peer;

	if (server_mode(server) == POOL_MODE_SESSION)
		return asked->count > 0;
	for (unsigned i = 0; i < asked->count; i++) {
		const struct followed *each = &asked->followed[i];
		const char *known =
			parameters_get_followed(server->link.parameters, each->name);

		if (has_other_value(known ? server->link.parameters : client->parameters, each))
			return true;
	}
	return false;
}

static bool is_due(const struct server_link *server)
{
	const struct client_link *client = (const struct client_link *)server->link.peer;
	struct parameter_values asked, present;

	if (server->restores == 0 || !client->asked)
		return false;
	parameter_values_read(client->asked, &asked);
	parameter_values_read(server->link.parameters, &present);
	return tracked_has_changed(&asked, &present,
		       parameter_count(link_registry(&server->link)->parameters)) ||
		followed_has_changed(server, &asked);
}

/* Returns true if this ReadyForQuery answers the last request of the client. */
static bool ends_all(struct server_link *server)
{
	const struct request *first = requests_first(&server->requests);

	return first && server->requests.count == 1 && server->batch_progress != BATCH_FAILED &&
		!request_is(first, REQUEST_SWALLOW) &&
		(first->type == PQ_QUERY || first->type == PQ_SYNC);
}

/* --- our query ---------------------------------------------------------------------------- */

/*
 * Mark the parameters unknown that the server has stopped to follow after a DISCARD ALL, and
 * that our query sets again. Returns false when out of memory.
 */
static bool mark_unknown(struct server_link *server)
{
	struct parameter_values present, wanted;
	struct parameters *set;

	parameter_values_read(server->link.parameters, &present);
	parameter_values_read(server->link.peer->parameters, &wanted);
	for (unsigned i = 0; i < wanted.count; i++) {
		const char *name = wanted.followed[i].name;
		bool is_there;

		parameter_values_place(&present, name, &is_there);
		if (!is_there && !parameter_values_follow(&present, name, NULL))
			return false;
	}
	set = parameter_values_intern(parameters_table(server->link.parameters), &present);
	server->follows = false;
	return link_take_parameters(&server->link, set);
}

/* Send our query. Its ReadyForQuery answers the request of the client instead of this one. */
static enum verdict send_query(struct relay_run *run)
{
	struct server_link *server = run->server;
	struct buffer message;
	bool good, sent = false;

	buffer_init(&message);
	restore_write_query(server, &message);
	good = !message.failed && mark_unknown(server);
	if (good)
		sent = stream_send_bytes(&server->link.stream, message.data, message.length) !=
			STREAM_SENT_NOT;
	buffer_free(&message);
	if (!sent)
		return relay_fail(run,
			failure_of(good ? REASON_SERVER_CONNECTION_CLOSED : REASON_NO_MEMORY));
	link_log(&server->link, LEVEL_DEBUG, "startup parameters are set again after a reset");
	server->restores--;
	server_set_task(server, SERVER_TASK_RESTORE);
	return RELAY_DROP;
}

/* --- reports to the client ---------------------------------------------------------------- */

static void insert(struct relay_run *run, const struct buffer *message)
{
	size_t at = 0;

	while (at < message->length) {
		const size_t left = message->length - at;
		const size_t length = left < RELAY_INSERTS ? left : RELAY_INSERTS;

		relay_insert(run, message->data + at, length);
		at += length;
	}
}

/*
 * Report followed parameters that have changed, of those that servers report, and take their
 * values into the set of the client. Returns false when out of memory.
 */
static bool take_followed(
	struct client_link *client, const struct parameters *server, struct buffer *out)
{
	struct parameter_table *table = parameters_table(server);
	struct parameters *set = parameters_ref(client->link.parameters);
	struct parameter_values values;

	parameter_values_read(server, &values);
	for (unsigned i = 0; set && i < values.count; i++) {
		const struct followed *present = &values.followed[i];
		struct parameters *next;

		if (!present->value || !has_other_value(client->link.parameters, present) ||
			!welcome_message_value(client->link.pool, present->name))
			continue;
		next = parameters_refollow(table, set, present->name, present->value);
		parameters_unref(set);
		set = next;
		writer_parameter_status(out, present->name, present->value);
	}
	return link_take_parameters(&client->link, set);
}

static bool take_tracked(
	struct client_link *client, const struct parameters *server, struct buffer *out)
{
	struct parameter_table *table = parameters_table(server);
	struct parameter_values values, before;

	parameter_values_read(server, &values);
	parameter_values_read(client->link.parameters, &before);
	for (unsigned i = 0; i < parameter_count(table); i++) {
		const char *value = values.tracked[i];

		if (value && (!before.tracked[i] || strcmp(value, before.tracked[i]) != 0))
			writer_parameter_status(out, parameter_name(table, i), value);
	}
	return link_take_parameters(
		&client->link, parameters_adopt(table, client->link.parameters, server));
}

/* Report what has changed since reports were withheld. Returns false when out of memory. */
static bool report_changes(struct relay_run *run)
{
	struct parameters *present = run->server->link.parameters;
	struct buffer message;
	bool good;

	buffer_init(&message);
	good = take_tracked(run->client, present, &message) &&
		take_followed(run->client, present, &message) && !message.failed;
	if (good && message.length > 0) {
		insert(run, &message);
		client_group_join(run->client);
	}
	buffer_free(&message);
	return good;
}

/* Judge ReadyForQuery as of any paired server, after a report of what has changed. */
static enum verdict judge_paired_ready(struct relay_run *run)
{
	if (!report_changes(run))
		return relay_fail(run, failure_of(REASON_NO_MEMORY));
	return relay_paired_server[PQ_READY_FOR_QUERY].judge(run);
}

enum verdict restore_judge_ready(struct relay_run *run)
{
	size_t length;
	const uint8_t *status = relay_body(run, &length);

	/* During a SUSPEND no query of our own is started. */
	if (length == 1 && *status == READY_IDLE && ends_all(run->server) &&
		!link_registry(run->from)->process->suspension) {
		if (is_due(run->server))
			return send_query(run);
		server_set_task(run->server, SERVER_TASK_NONE);
	}
	return judge_paired_ready(run);
}

/* --- from a server that runs our query ---------------------------------------------------- */

static enum verdict judge_answer(struct relay_run *run)
{
	(void)run;
	return RELAY_DROP;
}

/*
 * The client does not get the error, and continues with the parameters that it has, unless the
 * server session ends. A query that a late cancel request has hit is sent again at
 * ReadyForQuery.
 */
static enum verdict judge_error(struct relay_run *run)
{
	struct report report = {0};
	size_t length;
	const uint8_t *body = relay_body(run, &length);

	if (run->whole)
		report_parse(body, length, &report);
	if (report_is_of(&report, "57P"))
		return relay_paired_server[PQ_ERROR_RESPONSE].judge(run);
	if (report_is(&report, "57014"))
		server_set_task(run->server, SERVER_TASK_WATCH_RESET);
	link_log_repeated(run->from, LEVEL_WARNING,
		"could not set startup parameters again after a reset: %s",
		report.text ? report.text : "no message");
	return RELAY_DROP;
}

static enum verdict judge_ready(struct relay_run *run)
{
	run->start = run->at;
	server_set_task(run->server, SERVER_TASK_NONE);
	return judge_paired_ready(run);
}

#pragma GCC diagnostic ignored "-Woverride-init"

const struct relay_rule relay_restoring_server[RELAY_TYPES] = {
	RELAY_EVERY(judge_answer),
	[PQ_NOTIFICATION_RESPONSE] = {delivery_judge_paired, .whole = true},
	[PQ_ERROR_RESPONSE] = {judge_error, .whole = true},
	[PQ_PARAMETER_STATUS] = {relay_remember_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_ready, .whole = true},
};
