/* SPDX-License-Identifier: ISC */
#include "model/statistics/counters.h"

#include <stdlib.h>
#include <string.h>

#include "model/pool.h"
#include "model/registry.h"
#include "model/statistics/reason_facts.h"

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

/* --- sums --------------------------------------------------------------------------------- */

static void add_numbers(uint64_t *sum, const uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sum[i] += numbers[i];
}

#define ADD(array)                                                                             \
	add_numbers(&sum->array[0], &more->array[0], sizeof(sum->array) / sizeof(sum->array[0]))

static void add_of_database(struct database_counters *sum, const struct database_counters *more)
{
	sum->server_opened += more->server_opened;
	ADD(server_closed);
	ADD(client_closed);
	ADD(server_reset);
	ADD(unclean_release);
}

static void add(struct counters *sum, const struct counters *more)
{
	ADD(errors);
	ADD(client_rejected);
	ADD(auth_failed);
	for (unsigned side = 0; side < PROTOCOL_SIDES; side++)
		ADD(protocol_errors[side]);
	ADD(cancel_requests);
	sum->logins_delayed += more->logins_delayed;
	sum->client_logins += more->client_logins;
	for (unsigned method = 0; method < LOGIN_METHODS; method++) {
		for (unsigned outcome = 0; outcome < LOGIN_OUTCOMES; outcome++)
			histogram_merge(
				&sum->logins[method][outcome], &more->logins[method][outcome]);
	}
	add_of_database(&sum->nowhere, &more->nowhere);
	ADD(reloads);
}

#undef ADD

void counters_sum(const struct process *process, struct counters *sum)
{
	const struct counters *first = &process->registries[0]->counters;
	const struct registry *each;

	/* The first worker loads the configuration. */
	*sum = (struct counters){.last_reload = first->last_reload,
		.last_reload_failed = first->last_reload_failed};
	EACH_REGISTRY (each, process)
		add(sum, &each->counters);
}

/* --- counting ----------------------------------------------------------------------------- */

static bool was_logging_in(enum client_state state)
{
	return state <= CLIENT_WELCOMING;
}

static void count_protocol_error(
	struct counters *counters, enum protocol_side side, enum reason reason)
{
	const enum protocol_error kind = reason_protocol_error(reason, side);

	if (kind < PROTOCOL_ERRORS)
		counters->protocol_errors[side][kind]++;
}

/* A connection that brought a cancel request and is closed for another reason has failed. */
static void count_cancel(struct counters *counters, enum client_state state, enum reason reason)
{
	const enum cancel_outcome outcome = reason_cancel_outcome(reason);
	const bool asked = state == CLIENT_CANCEL_WAITING || state == CLIENT_CANCEL_SENT;

	if (!asked && state != CLIENT_GREETING)
		return;
	if (outcome < CANCEL_OUTCOMES)
		counters->cancel_requests[outcome]++;
	else if (asked)
		counters->cancel_requests[CANCEL_FAILED]++;
}

void counters_client_closed(
	const struct client_link *client, enum client_state state, const struct failure *why)
{
	struct counters *counters = &link_registry(&client->link)->counters;
	struct database_counters *mine =
		client->database ? counters_open(client->database) : &counters->nowhere;
	const enum client_rejection rejection = reason_client_rejected(why->reason);

	if (mine)
		mine->client_closed[reason_client_closed(why->reason)]++;
	if (was_logging_in(state) && rejection < CLIENT_REJECTIONS)
		counters->client_rejected[rejection]++;
	if (why->sqlstate[0] != '\0')
		counters->errors[why->reason]++;
	count_protocol_error(counters, PROTOCOL_CLIENT, why->reason);
	count_cancel(counters, state, why->reason);
}

/* RECONNECT, RELOAD and DNS retire servers for one reason; the server remembers the cause. */
static enum server_closing closing_of(const struct server_link *server, enum reason reason)
{
	const enum server_closing closing = reason_server_closed(reason);

	if (closing == SERVER_CLOSED_RECONNECT && server->close_needed)
		return server->close_cause;
	return closing;
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
	if (state == SERVER_CHECKING && reason_is_server_error(why->reason))
		counters_host(server, false);
	if (!with_client && reason_is_server_error(why->reason))
		counters->errors[why->reason]++;
	count_protocol_error(counters, PROTOCOL_SERVER, why->reason);
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
