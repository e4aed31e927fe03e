/* SPDX-License-Identifier: ISC */
#include "admin/console/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "admin/console/actions.h"
#include "admin/console/reply.h"
#include "admin/console/shutdown_notices.h"
#include "admin/console/waits.h"
#include "admin/show/show_fakes.h"
#include "admin/show/show_stream.h"
#include "base/nearest.h"
#include "base/text.h"
#include "session/link/peer_credentials.h"
#include "session/serving/control.h"
#include "session/serving/suspend.h"
#include "session/takeover/inventory.h"
#include "wire/writer.h"

/* --- answers ------------------------------------------------------------------------------ */

static enum command_end done(const struct command_call *call, const char *tag)
{
	writer_command_complete(call->out, tag);
	return COMMAND_DONE;
}

static enum command_end refuse(const struct command_call *call, const char *text)
{
	reply_error(call->out, call->client, "%s", text);
	return COMMAND_DONE;
}

/* Log a command that was accepted. */
static void announce(const struct command_call *call, const char *word)
{
	if (call->database)
		log_write(LEVEL_LOG, "%s '%s' command issued", word, call->database->name);
	else
		log_write(LEVEL_LOG, "%s command issued", word);
}

/* --- SHOW and SET ------------------------------------------------------------------------- */

/* Does the client run as our own system user, as the process of a takeover does? */
static bool is_local_superuser(const struct command_call *call)
{
	const struct client_link *client = call->client;
	struct ucred peer;

	if (client->link.remote.family != AF_UNIX ||
		client->user != call->registry->console_pool->user)
		return false;
	peer_credentials_read(client, &peer);
	return peer.uid == getuid();
}

/* Build all rows in one turn: later a descriptor could belong to another connection. */
static enum command_end show_descriptors(struct command_call *call, struct show_stream *show)
{
	show_stream_finish(show, call->out);
	show_stream_free(show);
	return COMMAND_PASSES_FDS;
}

static enum command_end cmd_show(struct command_call *call)
{
	struct show_stream *show;

	if (call->topic->right == RIGHT_ADMIN && !call->client->admin)
		return refuse(call, "admin access needed");
	show = show_stream_new(&(struct show_request){.registry = call->registry,
		.client = call->client,
		.text_length = strlen(call->text),
		.topic = call->topic,
		.options = call->options});
	if (!show) {
		call->out->failed = true;
		return COMMAND_DONE;
	}
	if (call->topic == &show_fds && is_local_superuser(call))
		return show_descriptors(call, show);
	if (!show_stream_continue(show, call->out)) {
		call->show = show;
		return COMMAND_CONTINUES;
	}
	show_stream_free(show);
	return COMMAND_DONE;
}

/* A name that does not exist may be misspelt. */
static enum command_end refuse_setting(const struct command_call *call)
{
	const char *name = call->words->argument;
	const char *nearest = settings_find(name) ? NULL : settings_nearest(name);
	char hint[128];

	snprintf(hint, sizeof(hint), "did you mean SET %s?", nearest ? nearest : "");
	reply_error_as(
		call->out, call->client, CONSOLE_SQLSTATE, "SET failed", nearest ? hint : NULL);
	return COMMAND_DONE;
}

static enum command_end cmd_set(struct command_call *call)
{
	const struct command_words *words = call->words;
	const struct topic *parameter = show_fakes_find(words->argument);
	char why[256] = "", tag[COMMAND_ARGUMENT_SIZE + COMMAND_VALUE_SIZE + 8];
	bool is_set;

	if (parameter && !show_fakes_is_fixed(parameter)) {
		reply_notice(call->out, "SET ignored", NULL);
		return done(call, "SET");
	}
	if (!call->client->admin)
		return refuse(call, "admin access needed");
	is_set = call->registry->process->actions->set(
		call->registry, words->argument, words->value, why, sizeof(why));
	if (why[0] != '\0')
		log_write(is_set ? LEVEL_WARNING : LEVEL_ERROR, "SET %s: %s", words->argument,
			why);
	if (!is_set)
		return refuse_setting(call);
	if (why[0] != '\0')
		reply_notice(call->out, why, NULL);
	snprintf(tag, sizeof(tag), "SET %s=%s", words->argument, words->value);
	return done(call, tag);
}

/* --- the process -------------------------------------------------------------------------- */

static enum command_end cmd_reload(struct command_call *call)
{
	char report[ACTION_REPORT_SIZE] = "";

	announce(call, "RELOAD");
	if (call->registry->process->actions->reload(call->registry, report, sizeof(report))) {
		if (report[0] != '\0')
			reply_notice(call->out, report, NULL);
		return done(call, "RELOAD");
	}
	reply_error_as(call->out, call->client, "F0000",
		"RELOAD failed, see logs for additional details", NULL);
	return COMMAND_DONE;
}

/* The modes of SHUTDOWN that wait. */
static const struct {
	const char *word;
	enum shutdown_mode mode;
} modes[] = {
	{"WAIT_FOR_SERVERS", SHUTDOWN_WAIT_FOR_SERVERS},
	{"WAIT_FOR_CLIENTS", SHUTDOWN_WAIT_FOR_CLIENTS},
};

enum { MODES = sizeof(modes) / sizeof(modes[0]) };

static unsigned find_mode(const char *word)
{
	unsigned i = 0;

	while (i < MODES && strcasecmp(modes[i].word, word) != 0)
		i++;
	return i;
}

bool commands_has_mode(const char *word)
{
	return find_mode(word) < MODES;
}

const char *commands_nearest_mode(const char *word)
{
	struct nearest nearest = {.asked = word};

	for (unsigned i = 0; i < MODES; i++)
		nearest_consider(&nearest, modes[i].word);
	return nearest.found;
}

static enum command_end cmd_shutdown(struct command_call *call)
{
	struct registry *registry = call->registry;
	unsigned mode;

	if (!call->words->has_argument) {
		announce(call, "SHUTDOWN");
		registry->process->actions->shutdown(registry, SHUTDOWN_NONE, true);
		return COMMAND_EXITS;
	}
	mode = find_mode(call->words->argument);
	log_write(LEVEL_LOG, "SHUTDOWN %s command issued", modes[mode].word);
	registry->process->actions->shutdown(registry, modes[mode].mode, false);
	shutdown_notices_begin(call->client, call->out);
	return done(call, "SHUTDOWN");
}

/* --- pools -------------------------------------------------------------------------------- */

/* Answer at once if there is nothing to wait for. */
static enum command_end wait_or_done(
	const struct command_call *call, enum wait_kind kind, bool is_over, const char *tag)
{
	if (is_over)
		return done(call, tag);
	if (!waits_add(call->client, kind, call->database))
		return refuse(call, "no mem");
	return COMMAND_WAITS;
}

static enum command_end cmd_pause(struct command_call *call)
{
	announce(call, "PAUSE");
	control_pause(call->registry, call->database);
	return wait_or_done(call, WAIT_PAUSE,
		control_pause_is_done(call->registry, call->database), "PAUSE");
}

static enum command_end cmd_resume(struct command_call *call)
{
	struct registry *registry = call->registry;

	if (call->database && !call->database->paused) {
		reply_error(call->out, call->client, "database %s is not paused",
			call->database->name);
		return COMMAND_DONE;
	}
	if (!call->database && registry->process->shutdown != SHUTDOWN_NONE)
		return refuse(call, "pooler is shutting down");
	if (!call->database && registry->process->operation == OPERATION_RUNNING)
		return refuse(call, "pooler is not paused/suspended");
	announce(call, "RESUME");
	control_resume(registry, call->database);
	waits_look(registry); /* consoles with a waiting PAUSE are answered first */
	return done(call, "RESUME");
}

static bool is_any_database_paused(const struct registry *registry)
{
	const struct database *database, *next;

	HASH_ITER (by_name, registry->process->directory.databases, database, next) {
		if (database->paused)
			return true;
	}
	return false;
}

static enum command_end cmd_suspend(struct command_call *call)
{
	struct registry *registry = call->registry;

	if (registry->process->shutdown != SHUTDOWN_NONE)
		return refuse(call, "pooler is shutting down");
	if (registry->process->operation != OPERATION_RUNNING)
		return refuse(call, "already suspended/paused");
	if (registry->process->draining)
		return refuse(call, "a takeover is in progress");
	if (is_any_database_paused(registry))
		return refuse(call, "cannot suspend with paused databases");
	announce(call, "SUSPEND");
	if (!suspend_begin(registry))
		return refuse(call, "no mem");
	return wait_or_done(call, WAIT_SUSPEND, suspend_is_complete(registry), "SUSPEND");
}

static enum command_end cmd_disable(struct command_call *call)
{
	announce(call, "DISABLE");
	call->database->disabled = true;
	return done(call, "DISABLE");
}

static enum command_end cmd_enable(struct command_call *call)
{
	announce(call, "ENABLE");
	call->database->disabled = false;
	return done(call, "ENABLE");
}

static enum command_end cmd_reconnect(struct command_call *call)
{
	announce(call, "RECONNECT");
	control_reconnect(call->registry, call->database);
	return done(call, "RECONNECT");
}

static enum command_end cmd_kill(struct command_call *call)
{
	announce(call, "KILL");
	control_kill(call->registry, call->database, true);
	return done(call, "KILL");
}

static bool parse_id(const char *text, uint64_t *id)
{
	const size_t length = strlen(text);

	if (length == 0 || length > 18 || strspn(text, "0123456789") != length)
		return false;
	*id = strtoull(text, NULL, 10);
	return true;
}

static enum command_end cmd_kill_client(struct command_call *call)
{
	uint64_t id;

	if (!parse_id(call->words->argument, &id))
		return refuse(call, "invalid client pointer supplied");
	if (!control_kill_client(call->registry, id))
		return refuse(call, "client not found");
	return done(call, "KILL_CLIENT");
}

static enum command_end cmd_wait_close(struct command_call *call)
{
	announce(call, "WAIT_CLOSE");
	return wait_or_done(call, WAIT_CLOSE,
		!control_is_reconnecting(call->registry, call->database), "WAIT_CLOSE");
}

/*
 * For the takeover by a new process of the same inventory version. For any other version
 * HANDOVER is an unknown command, as it is in PgBouncer; the new process then sends SUSPEND and
 * SHOW FDS.
 */
static enum command_end cmd_handover(struct command_call *call)
{
	struct registry *registry = call->registry;
	const char *argument = call->words->argument;
	const bool commits = strcmp(argument, "COMMIT") == 0;
	const char *why;

	if (!is_local_superuser(call) || (!commits && atoi(argument) != INVENTORY_VERSION))
		return refuse(call, "invalid command 'HANDOVER', use SHOW HELP;");
	why = commits ? registry->process->actions->commit(registry, call->client)
		      : registry->process->actions->hand_over(registry, call->client);
	if (why)
		return refuse(call, why);
	return commits ? COMMAND_EXITS : COMMAND_WAITS;
}

/* --- the table ---------------------------------------------------------------------------- */

const struct command commands[] = {
	{"SHOW", ARGUMENT_TOPIC, RIGHT_STATS, .run = cmd_show,
		.help = {{"SHOW <topic> [WHERE <column> <op> <value> [AND ...]]"
			  " [ORDER BY <column> [DESC], ...] [LIMIT <n>]",
			"show some rows: =, <>, <, <=, >, >=, [NOT] LIKE, IS [NOT] NULL",
			true}}},
	{"SELECT", ARGUMENT_TOPIC, RIGHT_STATS, .run = cmd_show},
	{"SET", ARGUMENT_ASSIGNMENT, RIGHT_STATS, .run = cmd_set,
		.help = {{"SET key = arg",
			"give a setting another value until RELOAD (admins)"}}},
	{"RELOAD", ARGUMENT_NONE, RIGHT_ADMIN, .run = cmd_reload,
		.help = {{"RELOAD", "read the configuration anew"}}},
	{"PAUSE", ARGUMENT_OPTIONAL_DATABASE, RIGHT_ADMIN, .makes_database = true,
		.refused_while_paused = true, .verb = "pause", .run = cmd_pause,
		.help = {{"PAUSE [<db>]", "hold clients, close servers as they come free"}}},
	{"RESUME", ARGUMENT_OPTIONAL_DATABASE, RIGHT_ADMIN, .run = cmd_resume,
		.help = {{"RESUME [<db>]", "go on after PAUSE, KILL or SUSPEND"}}},
	{"DISABLE", ARGUMENT_DATABASE, RIGHT_ADMIN, .makes_database = true, .verb = "disable",
		.run = cmd_disable,
		.help = {{"DISABLE <db>", "refuse new clients of a database"}}},
	{"ENABLE", ARGUMENT_DATABASE, RIGHT_ADMIN, .verb = "enable", .run = cmd_enable,
		.help = {{"ENABLE <db>", "let new clients in again"}}},
	{"RECONNECT", ARGUMENT_OPTIONAL_DATABASE, RIGHT_ADMIN, .makes_database = true,
		.verb = "reconnect", .run = cmd_reconnect,
		.help = {{"RECONNECT [<db>]", "renew server connections as they come free"}}},
	{"KILL", ARGUMENT_OPTIONAL_DATABASE, RIGHT_ADMIN, .makes_database = true,
		.refused_while_paused = true, .verb = "kill", .run = cmd_kill,
		.help = {{"KILL [<db>]", "drop all clients and servers, then pause"}}},
	{"KILL_CLIENT", ARGUMENT_CLIENT, RIGHT_ADMIN, .run = cmd_kill_client,
		.help = {{"KILL_CLIENT <client_id>", "drop the client with this id"}}},
	{"HANDOVER", ARGUMENT_CLIENT, RIGHT_ADMIN, .run = cmd_handover},
	{"SUSPEND", ARGUMENT_NONE, RIGHT_ADMIN, .run = cmd_suspend,
		.help = {{"SUSPEND", "read no connection any further, for a takeover"}}},
	{"SHUTDOWN", ARGUMENT_MODE, RIGHT_ADMIN, .run = cmd_shutdown,
		.help = {{"SHUTDOWN", "end the process at once"},
			{"SHUTDOWN WAIT_FOR_SERVERS|WAIT_FOR_CLIENTS",
				"end it when transactions are over, or clients have disconnected"}}},
	{"WAIT_CLOSE", ARGUMENT_OPTIONAL_DATABASE, RIGHT_ADMIN, .makes_database = true,
		.verb = "wait in", .run = cmd_wait_close,
		.help = {{"WAIT_CLOSE [<db>]", "wait until RECONNECT has renewed all"}}},
	{0},
};
