/* SPDX-License-Identifier: ISC */
#include "session/server/server_failure.h"

#include <string.h>

#include "model/statistics/reason_facts.h"
#include "session/link/close.h"
#include "session/server/host_role.h"
#include "session/server/server_login_state.h"
#include "wire/report.h"

bool server_failure_is_of_restart(const struct failure *why)
{
	static const char *const sqlstates[] = {
		"57P01", /* admin_shutdown */
		"57P02", /* crash_shutdown */
		"57P03", /* cannot_connect_now */
	};

	for (size_t i = 0; i < sizeof(sqlstates) / sizeof(*sqlstates); i++) {
		if (strcmp(why->sqlstate, sqlstates[i]) == 0)
			return true;
	}
	return false;
}

/*
 * The line has no link prefix: with many pools on one full PostgreSQL server, equal lines are
 * to be recognized as repetitions and logged once.
 */
static void log_server_refusal(
	const struct server_link *server, const char *severity, const char *text)
{
	const struct log_likeness likeness = {
		.kind = "server login failed", .about = server->link.pool->database->name};

	log_write_repeated(
		LEVEL_WARNING, NULL, &likeness, "server login failed: %s %s", severity, text);
}

void server_failure_receive_error(
	struct server_link *server, const uint8_t *body, size_t length)
{
	struct report report;
	struct failure why;
	const char *severity;

	report_parse(body, length, &report);
	severity = report.severity ? report.severity : "FATAL";
	why = failure_from_server(report.text, report.sqlstate);
	if (server->replication && !server_failure_is_of_restart(&why)) {
		link_log_repeated(&server->link, LEVEL_ERROR, "S: login failed: %s: %s",
			severity, why.text);
		server_close_for(server, REASON_LOGIN_FAILED);
		return;
	}
	log_server_refusal(server, severity, why.text);
	server->login->refused = !server_failure_is_of_restart(&why);
	server_close(server, &why);
}

/* --- consequences for the pool and its clients -------------------------------------------- */

/* The outcome that metrics count for a failed attempt. */
static enum connect_outcome outcome_of(const struct failure *why, bool tls_failed)
{
	if (tls_failed)
		return CONNECT_TLS;
	/* The server's own error of class 28, invalid authorization. */
	if (why->reason == REASON_SERVER_ERROR && strncmp(why->sqlstate, "28", 2) == 0)
		return CONNECT_AUTH;
	return reason_connect_outcome(why->reason);
}

/*
 * The server's refusal of a replication login concerns only the replication client. That the
 * server cannot be reached, or is still starting up, concerns all clients of the pool.
 */
static bool concerns_client_only(
	const struct server_link *server, enum server_state state, const struct failure *why)
{
	return server->replication && state != SERVER_CONNECTING &&
		!server_failure_is_of_restart(why);
}

/*
 * A host that refuses a login lives, but for a server that is starting or shutting down. One that has
 * answered to the request for TLS only, and hangs then, does not.
 */
static void note_for_host(struct server_link *server, const struct failure *why, bool answered)
{
	if (!answered || server_failure_is_of_restart(why) ||
		why->reason == REASON_CONNECT_TIMEOUT || reason_breaks_connection(why->reason))
		server_route_note_failure(&server->login->route, why->text);
	else
		host_role_lives(server, 0);
}

void server_failure_finish(struct server_link *server, enum server_state state,
	const struct failure *why, struct client_link *client)
{
	const struct server_login_owner *owner = server->login ? server->login->owner : NULL;
	const bool tls_failed = server->login && server->login->tls_failed;
	const bool refused = server->login && server->login->refused;
	const bool answered = server->login && server->login->route.answered;
	const bool is_short = server->login && server->login->route.short_of_resources;
	const bool wrong_secret = server->login && server->login->wrong_secret;
	const struct failure wrong = failure_of(REASON_SERVER_WRONG_PASSWORD_TYPE);

	if (server->login && owner && state <= SERVER_PREPARING &&
		reason_fails_login(why->reason))
		note_for_host(server, why, answered);
	server_login_free(server);
	if (!owner || state > SERVER_PREPARING || !reason_fails_login(why->reason))
		return;
	counters_connected(server, is_short ? CONNECT_OTHER : outcome_of(why, tls_failed));
	if (concerns_client_only(server, state, why)) {
		if (client)
			client_close_for(client, REASON_LOGIN_FAILED);
		return;
	}
	if (!is_short)
		counters_host(server, false);
	if (server->watches)
		return;
	server->link.pool->wanting = is_short;
	server->link.pool->last_launch = server->link.connect_time;
	if (wrong_secret)
		owner->failed(server->link.pool, &wrong, true);
	owner->failed(server->link.pool, why, refused);
}
