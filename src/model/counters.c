/* SPDX-License-Identifier: ISC */
#include "model/counters.h"

#include <stdlib.h>
#include <string.h>

#include "model/pool.h"
#include "model/registry.h"

/* --- counters of reasons besides their label ---------------------------------------------- */

/* For clients and servers: the caller knows the side. */
static const struct {
	enum reason reason;
	enum protocol_error kind;
} protocol_reasons[] = {
	{REASON_BAD_PACKET_HEADER, PROTOCOL_ERROR_LENGTH},
	{REASON_INVALID_STARTUP_LAYOUT, PROTOCOL_ERROR_LENGTH},
	{REASON_BAD_PKT_HEADER, PROTOCOL_ERROR_LENGTH},
	{REASON_INCOMPLETE_PKT, PROTOCOL_ERROR_LENGTH},
	{REASON_UNKNOWN_PKT, PROTOCOL_ERROR_TYPE},
	{REASON_UNKNOWN_SERVER_PKT, PROTOCOL_ERROR_TYPE},
	{REASON_UNKNOWN_PKT_FROM_SERVER, PROTOCOL_ERROR_TYPE},
	{REASON_CONSOLE_BAD_PACKET, PROTOCOL_ERROR_TYPE},
	{REASON_BAD_PACKET, PROTOCOL_ERROR_ORDER},
	{REASON_CLIENT_RESENT_STARTUP, PROTOCOL_ERROR_ORDER},
	{REASON_PASSWORD_BEFORE_STARTUP, PROTOCOL_ERROR_ORDER},
	{REASON_SSL_REQ_INSIDE_SSL, PROTOCOL_ERROR_ORDER},
	{REASON_IDLE_SERVER_GOT_DIRTY, PROTOCOL_ERROR_ORDER},
	{REASON_SV_IDLE_SERVER_GOT_DIRTY, PROTOCOL_ERROR_ORDER},
	{REASON_SV_USED_SERVER_GOT_DIRTY, PROTOCOL_ERROR_ORDER},
	{REASON_INVALID_SASL_MECHANISM, PROTOCOL_ERROR_AUTH},
	{REASON_FAILED_TO_ACCEPT_SSL, PROTOCOL_ERROR_AUTH},
	{REASON_SERVER_INVALID_SIGNATURE, PROTOCOL_ERROR_AUTH},
	{REASON_UNENCRYPTED_DATA_AFTER_SSL_REQUEST, PROTOCOL_ERROR_STUFFING},
	{REASON_UNENCRYPTED_DATA_AFTER_GSSENC_REQUEST, PROTOCOL_ERROR_STUFFING},
	{REASON_UNENCRYPTED_DATA_AFTER_SSL_RESPONSE, PROTOCOL_ERROR_STUFFING},
	{REASON_BAD_SSLREQ_ANSWER, PROTOCOL_ERROR_OTHER},
	{REASON_BROKEN_PARAMETER_STATUS, PROTOCOL_ERROR_OTHER},
};

static const struct {
	enum reason reason;
	enum cancel_outcome outcome;
} cancel_reasons[] = {
	{REASON_CANCEL_SENT, CANCEL_FORWARDED},
	{REASON_CANCEL_FOR_CONSOLE_CLIENT, CANCEL_FORWARDED},
	{REASON_CANCEL_FOR_WAITING_CLIENT, CANCEL_FORWARDED},
	{REASON_CANCEL_FOR_IDLE_CLIENT, CANCEL_LATE},
	{REASON_CANCEL_FOR_CLIENT_NOW_IDLE, CANCEL_LATE},
	{REASON_CANCEL_KEY_UNKNOWN, CANCEL_UNKNOWN_KEY},
	{REASON_CANCEL_WAIT_TIMEOUT, CANCEL_TIMEOUT},
	{REASON_BAD_CANCEL_REQUEST, CANCEL_FAILED},
	{REASON_CANCEL_WAITS_ALREADY, CANCEL_FAILED},
	{REASON_CANCEL_GIVEN_UP, CANCEL_FAILED},
	{REASON_CANCEL_PEER_NOT_FOUND, CANCEL_FAILED},
	{REASON_CANCEL_TTL_EXHAUSTED, CANCEL_FAILED},
	{REASON_FAILED_CANCEL_REQUEST, CANCEL_FAILED},
};

static bool has_label(enum reason reason, const char *label)
{
	return strcmp(reason_label(reason), label) == 0;
}

/* `fallback`: count a reason that is not in the table, as OTHER. */
static void count_protocol_error(
	struct counters *counters, enum protocol_side side, enum reason reason, bool fallback)
{
	for (size_t i = 0; i < sizeof(protocol_reasons) / sizeof(protocol_reasons[0]); i++) {
		if (protocol_reasons[i].reason == reason) {
			counters->protocol_errors[side][protocol_reasons[i].kind]++;
			return;
		}
	}
	if (fallback)
		counters->protocol_errors[side][PROTOCOL_ERROR_OTHER]++;
}

/* Count how a CancelRequest has ended. In GREETING other reasons are those of any client. */
static void count_cancel(struct counters *counters, enum client_state state, enum reason reason)
{
	if (state != CLIENT_GREETING && state != CLIENT_CANCEL_WAITING &&
		state != CLIENT_CANCEL_SENT)
		return;
	for (size_t i = 0; i < sizeof(cancel_reasons) / sizeof(cancel_reasons[0]); i++) {
		if (cancel_reasons[i].reason == reason) {
			counters->cancel_requests[cancel_reasons[i].outcome]++;
			return;
		}
	}
	if (state != CLIENT_GREETING)
		counters->cancel_requests[CANCEL_FAILED]++;
}

/* --- databases ---------------------------------------------------------------------------- */

struct database_counters *counters_open(struct database *database)
{
	if (!database->counters)
		database->counters = calloc(1, sizeof(*database->counters));
	return database->counters;
}

const struct database_counters *counters_of_database(const struct database *database)
{
	return database->counters;
}

void counters_free(struct database_counters *counters)
{
	if (!counters)
		return;
	for (unsigned i = 0; i < CONNECT_OUTCOMES; i++)
		free(counters->connects[i]);
	free(counters->hosts_up);
	free(counters);
}

static struct database_counters *counters_of(const struct server_link *server)
{
	return counters_open(server->link.pool->database);
}

/* --- counting ----------------------------------------------------------------------------- */

static bool was_logging_in(enum client_state state)
{
	return state <= CLIENT_WELCOMING;
}

void counters_client_closed(
	const struct client_link *client, enum client_state state, const struct failure *why)
{
	struct counters *counters = &link_registry(&client->link)->counters;
	struct database_counters *mine =
		client->database ? counters_open(client->database) : &counters->nowhere;
	const char *label = reason_label(why->reason);
	const unsigned rejection = label_find(
		client_rejection_labels, CLIENT_REJECTIONS, label, CLIENT_REJECTIONS);

	if (mine)
		mine->client_closed[label_find(
			client_closing_labels, CLIENT_CLOSINGS, label, CLIENT_CLOSED_OTHER)]++;
	if (was_logging_in(state) && rejection < CLIENT_REJECTIONS)
		counters->client_rejected[rejection]++;
	if (why->sqlstate[0] != '\0')
		counters->errors[why->reason]++;
	if (has_label(why->reason, "protocol"))
		count_protocol_error(counters, PROTOCOL_CLIENT, why->reason, true);
	count_cancel(counters, state, why->reason);
}

/*
 * RECONNECT, RELOAD and DNS changes close with one reason; close_cause has which of them it
 * was.
 */
static enum server_closing closing_of(const struct server_link *server, enum reason reason)
{
	const unsigned found = label_find(server_closing_labels, SERVER_CLOSINGS,
		reason_label(reason), SERVER_CLOSED_OTHER);

	if (found == SERVER_CLOSED_RECONNECT && server->close_needed)
		return server->close_cause;
	return (enum server_closing)found;
}

/* Returns false for a close that was requested, or that a client or a limit has caused. */
static bool is_error_of_server(enum reason reason)
{
	return has_label(reason, "server_error") || has_label(reason, "unclean") ||
		has_label(reason, "check_failed") || has_label(reason, "dns") ||
		has_label(reason, "memory") || has_label(reason, "other");
}

void counters_server_closed(const struct server_link *server, enum server_state state,
	const struct failure *why, bool with_client)
{
	struct counters *counters = &link_registry(&server->link)->counters;
	struct database_counters *mine = counters_of(server);

	if (mine)
		mine->server_closed[closing_of(server, why->reason)]++;
	if (state == SERVER_RESETTING)
		counters_reset(server, RESET_FAILED);
	if (state == SERVER_CHECKING && is_error_of_server(why->reason))
		counters_host(server, false);
	if (!with_client && is_error_of_server(why->reason))
		counters->errors[why->reason]++;
	count_protocol_error(counters, PROTOCOL_SERVER, why->reason, false);
}

void counters_server_opened(struct database *database)
{
	struct database_counters *mine = counters_open(database);

	if (mine)
		mine->server_opened++;
}

void counters_connected(const struct server_link *server, enum connect_outcome outcome)
{
	struct database_counters *mine = counters_of(server);

	if (!mine)
		return;
	if (!mine->connects[outcome])
		mine->connects[outcome] = calloc(1, sizeof(struct histogram));
	if (mine->connects[outcome])
		histogram_add(mine->connects[outcome],
			loop_now(server->link.stream.loop) - server->link.connect_time);
}

void counters_rejected(struct registry *registry, enum client_rejection why)
{
	registry->counters.client_rejected[why]++;
}

void counters_reset(const struct server_link *server, enum reset_outcome outcome)
{
	struct database_counters *mine = counters_of(server);

	if (mine)
		mine->server_reset[outcome]++;
}

void counters_unclean(const struct server_link *server, enum unclean_release why)
{
	struct database_counters *mine = counters_of(server);

	if (mine)
		mine->unclean_release[why]++;
}

/* --- hosts -------------------------------------------------------------------------------- */

static bool open_hosts(struct database_counters *counters, const struct database_config *config)
{
	const unsigned listed = database_config_hosts(config);
	const unsigned hosts = listed > 0 ? listed : 1;

	if (counters->hosts_up && counters->hosts == hosts)
		return true;
	free(counters->hosts_up);
	counters->hosts_up = malloc(hosts);
	if (counters->hosts_up)
		memset(counters->hosts_up, -1, hosts);
	counters->hosts = hosts;
	return counters->hosts_up != NULL;
}

void counters_host(const struct server_link *server, bool up)
{
	struct database_counters *mine = counters_of(server);

	if (mine && open_hosts(mine, server->link.pool->database->config) &&
		server->host < mine->hosts)
		mine->hosts_up[server->host] = up;
}

bool counters_host_is_known(const struct database *database, unsigned host, bool *up)
{
	const struct database_counters *mine = database->counters;

	if (!mine || !mine->hosts_up || host >= mine->hosts || mine->hosts_up[host] < 0)
		return false;
	*up = mine->hosts_up[host] > 0;
	return true;
}

void counters_forget_hosts(struct database *database)
{
	struct database_counters *mine = database->counters;

	if (!mine)
		return;
	free(mine->hosts_up);
	mine->hosts_up = NULL;
}
