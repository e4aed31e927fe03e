/* SPDX-License-Identifier: ISC */
#include "session/serving/progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "session/serving/drain.h"
#include "session/serving/suspend.h"

/* --- words -------------------------------------------------------------------------------- */

/* A text that is cut at the end of its room. */
struct words {
	char *out;
	size_t size, length;
};

static struct words words_in(char *out, size_t size)
{
	out[0] = '\0';
	return (struct words){.out = out, .size = size};
}

static void say(struct words *words, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void say(struct words *words, const char *format, ...)
{
	va_list arguments;
	int added;

	va_start(arguments, format);
	added = vsnprintf(
		words->out + words->length, words->size - words->length, format, arguments);
	va_end(arguments);
	if (added > 0)
		words->length += (size_t)added;
	if (words->length >= words->size)
		words->length = text_utf8_cut(words->out, words->size - 1, words->size - 1);
	words->out[words->length] = '\0';
}

/* `1,000` */
static void say_number(struct words *words, uint64_t number)
{
	char text[TEXT_GROUPED_SIZE];

	say(words, "%s", text_grouped(number, text));
}

static void say_seconds(struct words *words, usec_t time)
{
	say_number(words, time > 0 ? (uint64_t)(time / USEC_PER_SEC) : 0);
	say(words, " s");
}

/* `1 client`, `1,000 clients` */
static void say_count(struct words *words, uint64_t count, const char *what)
{
	say_number(words, count);
	say(words, " %s%s", what, count == 1 ? "" : "s");
}

/* --- the client that has had a server for the longest ------------------------------------- */

static void say_application(struct words *words, const struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);
	const int index = parameter_index(registry->parameters, "application_name");
	const char *name = client->link.parameters && index >= 0
		? parameters_get(client->link.parameters, (unsigned)index)
		: NULL;
	char escaped[128];

	if (!name || name[0] == '\0')
		return;
	text_escape(escaped, sizeof(escaped), name, strlen(name));
	say(words, "application %s, ", escaped);
}

static void say_client(struct words *words, const struct client_link *client)
{
	const char *database_name = link_database_name(&client->link);
	const char *user_name = link_user_name(&client->link);
	char database[96], user[96], address[ADDRESS_TEXT_SIZE];

	text_escape(database, sizeof(database), database_name, strlen(database_name));
	text_escape(user, sizeof(user), user_name, strlen(user_name));
	say(words, "client %u of %s/%s at %s", link_number(&client->link), database, user,
		address_text(&client->link.remote, address));
}

/* What the server does for its client. */
static const char *activity(const struct server_link *server)
{
	switch (server->transaction_status) {
	case 'I':
		return "idle, not in a transaction";
	case 'T':
		return "idle in transaction";
	case 'E':
		return "idle in a failed transaction";
	default:
		return "a query runs";
	}
}

static void say_longest(
	struct words *words, const struct registry *registry, const struct busy_servers *busy)
{
	const struct client_link *client = busy->longest;

	if (!client)
		return;
	say(words, "; %s for ",
		client->transaction_start ? "the oldest transaction is open"
					  : "one client has had its server");
	say_seconds(words, loop_now(registry->loop) - busy->since);
	say(words, " (");
	say_application(words, client);
	say_client(words, client);
	say(words, ", %s)", activity((const struct server_link *)client->link.peer));
}

/* --- servers ------------------------------------------------------------------------------ */

/* `3 of 40 servers are`; without `of` if more are left than there were, as far as is known. */
static void say_left(struct words *words, unsigned left, unsigned all, const char *what)
{
	say_number(words, left);
	if (all >= left) {
		say(words, " of ");
		say_number(words, all);
	}
	say(words, " %s%s %s", what, (all >= left ? all : left) == 1 ? "" : "s",
		left == 1 ? "is" : "are");
}

static void say_transactions(struct words *words, const struct busy_servers *busy)
{
	say(words, ", ");
	if (busy->transactions > 0)
		say_number(words, busy->transactions);
	else
		say(words, "none");
	say(words, " in a transaction");
}

static void say_pause(
	struct words *words, const struct registry *registry, const struct database *database)
{
	const struct busy_servers busy = control_count_busy(registry, database);
	const unsigned all =
		database ? database->paused_servers : registry->process->operation_servers;

	say_left(words, busy.servers, all, "server");
	say(words, " still in use");
	say_transactions(words, &busy);
	say_longest(words, registry, &busy);
}

void progress_of_pause(const struct registry *registry, const struct database *database,
	char out[PROGRESS_TEXT_SIZE])
{
	struct words words = words_in(out, PROGRESS_TEXT_SIZE);

	say_pause(&words, registry, database);
}

void progress_of_reconnect(const struct registry *registry, const struct database *database,
	unsigned all, char out[PROGRESS_TEXT_SIZE])
{
	const struct busy_servers busy = control_count_retired(registry, database);
	struct words words = words_in(out, PROGRESS_TEXT_SIZE);

	say_left(&words, busy.servers, all, "old server");
	say(&words, " not closed yet");
	say_transactions(&words, &busy);
	say_longest(&words, registry, &busy);
}

/* --- shutdown ----------------------------------------------------------------------------- */

static void say_limit(struct words *words, const struct registry *registry)
{
	const struct process *process = registry->process;
	const usec_t limit = process->settings->shutdown_timeout;

	if (limit > 0) {
		say(words, "; at most ");
		say_seconds(words, limit - (loop_now(registry->loop) - process->shutdown_at));
		say(words, " more");
	} else {
		say(words, "; without a time limit (shutdown_timeout = 0)");
	}
}

/* `300 of 1,000 clients have left, 700 remain and 1 console, 12 in a transaction` */
static void say_clients(
	struct words *words, const struct process *process, const struct busy_servers *busy)
{
	const unsigned consoles = process->limits.consoles;
	const unsigned left = process->limits.clients - consoles;
	const unsigned all = process->shutdown_clients;

	if (left <= all) {
		say_number(words, all - left);
		say(words, " of ");
		say_count(words, all, "client");
		say(words, " %s left, ", all - left == 1 || all == 1 ? "has" : "have");
	}
	say_number(words, left);
	say(words, left <= all ? " remain" : left == 1 ? " client" : " clients");
	if (consoles > 0) {
		say(words, " and ");
		say_count(words, consoles, "console");
	}
	say_transactions(words, busy);
}

static void say_delay(struct words *words, const struct registry *registry)
{
	const struct process *process = registry->process;

	say(words, "; all goes on for ");
	say_seconds(words,
		drain_delay_of(process->settings) -
			(loop_now(registry->loop) - process->shutdown_at));
	say(words, " more (drain_delay)");
}

static void say_drain(struct words *words, const struct registry *registry)
{
	const struct process *process = registry->process;
	const struct busy_servers busy = control_count_busy(registry, NULL);

	say_clients(words, process, &busy);
	switch (process->drain) {
	case DRAIN_NONE:
		/* After a takeover. */
		say(words,
			", which could not be handed over (encrypted connections, logins); each "
			"leaves after its transaction");
		break;
	case DRAIN_DELAYED:
		say_delay(words, registry);
		break;
	case DRAIN_CLOSING:
		if (process->settings->shutdown_timeout > 0)
			say(words, "; idle clients are closed");
		break;
	}
	say_longest(words, registry, &busy);
	say_limit(words, registry);
}

void progress_of_shutdown(const struct registry *registry, char out[PROGRESS_TEXT_SIZE])
{
	struct words words = words_in(out, PROGRESS_TEXT_SIZE);

	if (registry->process->shutdown == SHUTDOWN_WAIT_FOR_CLIENTS) {
		say_drain(&words, registry);
	} else if (registry->process->shutdown == SHUTDOWN_WAIT_FOR_SERVERS) {
		say_pause(&words, registry, NULL);
		say_limit(&words, registry);
	}
}

const char *progress_shutdown_name(const struct registry *registry)
{
	switch (registry->process->shutdown) {
	case SHUTDOWN_NONE:
		break;
	case SHUTDOWN_WAIT_FOR_SERVERS:
		return "SHUTDOWN WAIT_FOR_SERVERS";
	case SHUTDOWN_WAIT_FOR_CLIENTS:
		return registry->process->drain == DRAIN_NONE ? "the old process of a takeover"
							      : "SHUTDOWN WAIT_FOR_CLIENTS";
	}
	return NULL;
}

/* --- takeover ----------------------------------------------------------------------------- */

static unsigned count_servers(const struct registry *registry)
{
	const struct pool *pool;
	unsigned count = 0;

	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory)
		count += pool_connected_servers(pool);
	return count;
}

void progress_of_takeover(
	const struct registry *registry, usec_t time, char out[PROGRESS_LINE_SIZE])
{
	const struct process *process = registry->process;
	const unsigned taken = process->limits.admitted - process->limits.consoles;
	const unsigned all = process->old_clients;
	struct words words = words_in(out, PROGRESS_LINE_SIZE);

	say(&words, "taken over ");
	if (all > taken) {
		say_number(&words, taken);
		say(&words, " of ");
	}
	say_count(&words, all > taken ? all : taken, "client");
	say(&words, " and ");
	say_count(&words, count_servers(registry), "server");
	say(&words, " in %lld ms", (long long)(time / USEC_PER_MSEC));
	if (all <= taken)
		return;
	say(&words, "; ");
	say_count(&words, all - taken, "client");
	say(&words, " %s with process %d until %s: encrypted connections cannot be handed over",
		all - taken == 1 ? "stays" : "stay", (int)process->old_process,
		all - taken == 1 ? "its transaction ends" : "their transactions end");
}

/* --- the process -------------------------------------------------------------------------- */

/* The database with the PAUSE that has waited for the longest; NULL: none waits. */
static const struct database *waiting_database(const struct registry *registry)
{
	const struct database *database, *next, *found = NULL;

	HASH_ITER (by_name, registry->process->directory.databases, database, next) {
		if (database->paused && (!found || database->paused_at < found->paused_at) &&
			!control_pause_is_done(registry, database))
			found = database;
	}
	return found;
}

static bool does_operation_wait(const struct registry *registry)
{
	switch (registry->process->operation) {
	case OPERATION_RUNNING:
		break;
	case OPERATION_PAUSED:
		return !control_pause_is_done(registry, NULL);
	case OPERATION_SUSPENDED:
		return !suspend_is_complete(registry);
	}
	return false;
}

bool progress_of_process(const struct registry *registry, struct progress *out)
{
	const struct process *process = registry->process;
	const struct database *database = NULL;

	if (process->shutdown != SHUTDOWN_NONE) {
		*out = (struct progress){.command = progress_shutdown_name(registry),
			.since = process->shutdown_at};
		progress_of_shutdown(registry, out->text);
		return true;
	}
	if (does_operation_wait(registry))
		*out = (struct progress){
			.command = process->operation == OPERATION_PAUSED ? "PAUSE" : "SUSPEND",
			.since = process->operation_at};
	else if ((database = waiting_database(registry)) != NULL)
		*out = (struct progress){.command = "PAUSE",
			.database = database->name,
			.since = database->paused_at};
	else
		return false;
	progress_of_pause(registry, database, out->text);
	return true;
}

void progress_line(const struct progress *progress, usec_t now, char out[PROGRESS_LINE_SIZE])
{
	struct words words = words_in(out, PROGRESS_LINE_SIZE);

	say(&words, "%s%s%s has waited ", progress->command, progress->database ? " " : "",
		progress->database ? progress->database : "");
	say_seconds(&words, now - progress->since);
	say(&words, ": %s", progress->text);
}
