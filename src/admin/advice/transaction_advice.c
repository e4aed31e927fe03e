/* SPDX-License-Identifier: ISC */
/* Advice about transactions that are open for long: idle ones, and others. */
#include <stdio.h>

#include "admin/advice/rules.h"
#include "model/statistics/pool_figures.h"

enum { AGE, IDLE_TIME, COUNT, LIMIT };

/* --- the client --------------------------------------------------------------------------- */

static const char *application_of(const struct client_link *client)
{
	const int index =
		parameter_index(client->link.pool->registry->parameters, "application_name");

	return index >= 0 && client->link.parameters
		? parameters_get(client->link.parameters, (unsigned)index)
		: NULL;
}

void transaction_advice_set_client(struct advice *finding, const struct client_link *client)
{
	char address[ADDRESS_TEXT_SIZE];

	finding_set_name(finding, application_of(client));
	snprintf(finding->address, sizeof(finding->address), "%s",
		address_host(&client->link.remote, address));
}

void transaction_advice_write_client(
	const struct advice *finding, bool with_names, struct buffer *out)
{
	if (!with_names)
		return;
	if (finding->name[0])
		buffer_printf(out, " by application '%s'", finding->name);
	else
		buffer_printf(out, " by a client without application_name");
	if (finding->address[0])
		buffer_printf(out, " (%s)", finding->address);
}

/* --- the walk ----------------------------------------------------------------------------- */

/* The transactions of a pool that are older than the rules allow. */
struct old_transactions {
	const struct server_link *idle, *busy; /* the oldest ones; NULL: none */
	usec_t idle_time, age;
	unsigned idle_count, busy_count;
};

/*
 * May the pool have a transaction of this age? Its active servers are sorted by when they got their
 * client, and the last one has had it longest. In session mode a client may have begun its transaction
 * at any time since, so that the servers must be looked at.
 */
static bool may_have_old(const struct pool *pool, usec_t now, usec_t age)
{
	struct link *link = TAILQ_LAST(&pool->servers[SERVERS_ACTIVE], link_list);
	usec_t start;

	if (!link)
		return false;
	if (!link->peer || pool->mode == POOL_MODE_SESSION || pool->pinned > 0)
		return true;
	start = client_of(link->peer)->transaction_start;
	return start == 0 || now - start >= age;
}

static void take_server(
	struct old_transactions *old, const struct server_link *server, usec_t now)
{
	const usec_t start = client_of(server->link.peer)->transaction_start;
	const usec_t age = start > 0 ? now - start : 0;
	const usec_t idle = now - server->link.request_time;

	if (server->replication)
		return;
	if (pool_server_idles_in_transaction(server)) {
		if (idle < findings_least(ADVICE_IDLE_TRANSACTION) * USEC_PER_SEC)
			return;
		old->idle_count++;
		if (idle > old->idle_time) {
			old->idle_time = idle;
			old->idle = server;
		}
		return;
	}
	if (age < findings_least(ADVICE_LONG_TRANSACTION) * USEC_PER_SEC)
		return;
	old->busy_count++;
	if (age > old->age) {
		old->age = age;
		old->busy = server;
	}
}

/* --- the rules ---------------------------------------------------------------------------- */

static struct advice *note(
	struct advisor *advisor, enum advice_kind kind, const struct server_link *server)
{
	struct pool *pool = server->link.pool;
	const struct client_link *client = client_of(server->link.peer);
	struct advice *finding = findings_note(
		&advisor->findings, kind, &(struct finding_subject){.pool = pool});

	if (!finding)
		return NULL;
	finding->figures[AGE] = advisor->findings.now - client->transaction_start;
	finding->figures[IDLE_TIME] = advisor->findings.now - server->link.request_time;
	if (pool->client_count[CLIENT_WAITING] > 0)
		finding->severity = ADVICE_CRITICAL;
	transaction_advice_set_client(finding, client);
	return finding;
}

void transaction_advice_look(struct advisor *advisor, struct pool *pool)
{
	const usec_t now = advisor->findings.now;
	const usec_t least = findings_least(ADVICE_IDLE_TRANSACTION) * USEC_PER_SEC;
	const struct settings *settings = advisor->registry->process->settings;
	struct old_transactions old = {0};
	struct advice *finding;
	struct link *link;

	if (!may_have_old(pool, now, least))
		return;
	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place) {
		if (link->peer)
			take_server(&old, server_of(link), now);
	}
	if (old.idle && (finding = note(advisor, ADVICE_IDLE_TRANSACTION, old.idle)) != NULL) {
		finding->figures[COUNT] = old.idle_count;
		finding->figures[LIMIT] = settings->idle_transaction_timeout;
	}
	if (old.busy && (finding = note(advisor, ADVICE_LONG_TRANSACTION, old.busy)) != NULL) {
		finding->figures[COUNT] = old.busy_count;
		finding->figures[LIMIT] = settings->transaction_timeout;
	}
}

/* --- the sentences ------------------------------------------------------------------------ */

static void write_others(const struct advice *finding, struct buffer *out)
{
	if (finding->figures[COUNT] > 1)
		buffer_printf(out, "; %lld more in this pool are like it",
			(long long)finding->figures[COUNT] - 1);
}

static void write_limit(const struct advice *finding, const char *setting, struct buffer *out)
{
	buffer_printf(out, " %s (now ", setting);
	if (finding->figures[LIMIT] > 0)
		finding_write_time(out, finding->figures[LIMIT]);
	else
		buffer_printf(out, "0: none");
	buffer_printf(out, ") ends such transactions; better have the application ");
}

static void write_idle(const struct advice *finding, bool with_names, struct buffer *out)
{
	buffer_printf(out, "A transaction");
	transaction_advice_write_client(finding, with_names, out);
	buffer_printf(out, " has been open for ");
	finding_write_time(out, finding->figures[AGE]);
	buffer_printf(out, ", and idle for ");
	finding_write_time(out, finding->figures[IDLE_TIME]);
	write_others(finding, out);
	buffer_printf(out, ": it keeps a server, locks, and old rows from VACUUM.");
	write_limit(finding, "idle_transaction_timeout", out);
	buffer_printf(out, "commit before it waits for something else.");
}

static void write_long(const struct advice *finding, bool with_names, struct buffer *out)
{
	buffer_printf(out, "A transaction");
	transaction_advice_write_client(finding, with_names, out);
	buffer_printf(out, " has been open for ");
	finding_write_time(out, finding->figures[AGE]);
	buffer_printf(out, ", and runs queries");
	write_others(finding, out);
	buffer_printf(out, ": it keeps a server, locks, and old rows from VACUUM.");
	write_limit(finding, "transaction_timeout", out);
	buffer_printf(out, "divide its work.");
}

bool transaction_advice_write(const struct advice *finding, bool with_names, struct buffer *out)
{
	if (finding->kind == ADVICE_IDLE_TRANSACTION)
		write_idle(finding, with_names, out);
	else if (finding->kind == ADVICE_LONG_TRANSACTION)
		write_long(finding, with_names, out);
	else
		return false;
	return true;
}
