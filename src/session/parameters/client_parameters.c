/* SPDX-License-Identifier: ISC */
#include "session/parameters/client_parameters.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/text.h"
#include "session/link/close.h"
#include "session/link/login.h"
#include "wire/parameter_draft.h"
#include "wire/switches.h"

/* Maximum size of application_name with the address; log tools rely on this size. */
enum { APPLICATION_NAME_SIZE = 400 };

/*
 * Make application_name `NAME - ADDRESS`, so that pg_stat_activity shows the address of the
 * client. Returns false when out of memory.
 */
static bool add_host(struct client_link *client, struct parameter_draft *draft)
{
	struct registry *registry = link_registry(&client->link);
	const int index = parameter_index(registry->parameters, "application_name");
	const char *name = draft->values.tracked[index];
	char address[ADDRESS_TEXT_SIZE], host[256] = "", text[APPLICATION_NAME_SIZE];
	size_t length, room;

	if (client->link.remote.family == AF_UNIX) {
		gethostname(host, sizeof(host) - 1);
		snprintf(address, sizeof(address), "unix(%d@%.80s):%u", client->link.remote.pid,
			host, client->link.remote.port);
	} else {
		address_text(&client->link.remote, address);
	}
	if (!name)
		name = "app";
	length = strlen(name);
	room = sizeof(text) - strlen(" - ") - strlen(address) - 1;
	/* A server refuses a name that ends within a character. */
	snprintf(text, sizeof(text), "%.*s - %s", (int)text_utf8_cut(name, length, room), name,
		address);
	return parameter_draft_track(draft, (unsigned)index, text);
}

static bool is_ignored(const struct registry *registry, const char *name, bool in_options)
{
	const char *ignored = registry->process->settings->ignore_startup_parameters;

	return text_list_has(ignored, name) ||
		(in_options && text_list_has(ignored, "options"));
}

/* Does the configuration allow to follow the parameter? `seed` cannot be reset in a session. */
static bool may_follow(const struct registry *registry, const char *name)
{
	return parameter_follows_its_set(name) ||
		(registry->process->settings->startup_parameters == STARTUP_FOLLOW &&
			strcasecmp(name, "seed") != 0);
}

/*
 * Follow a parameter. Remember its name if it is from `options`: the client gets another error
 * for an unknown parameter there.
 */
static enum drafted follow(struct client_link *client, struct parameter_draft *draft,
	const char *name, const char *value, bool in_options)
{
	if (in_options && !buffer_append(&client->login->option_names, name, strlen(name) + 1))
		return DRAFTED_NO_MEMORY;
	return parameter_draft_follow(draft, name, value);
}

/*
 * Returns the present name of a parameter that PostgreSQL has renamed; it still accepts the
 * old.
 */
static const char *present_name(const char *name)
{
	if (strcasecmp(name, "sort_mem") == 0)
		return "work_mem";
	return strcasecmp(name, "vacuum_mem") == 0 ? "maintenance_work_mem" : name;
}

/* The client asks for servers of a role: its pool is another one. */
static bool is_asked_role(const char *name, bool in_options)
{
	return strcasecmp(name, "pgusher.target_session_attrs") == 0 ||
		(in_options && strcasecmp(name, "target_session_attrs") == 0);
}

/* Add one parameter of the startup message to the draft. */
static enum drafted take_setting(struct client_link *client, struct parameter_draft *draft,
	const char *name, const char *value, bool in_options)
{
	const struct registry *registry = link_registry(&client->link);
	const int index = parameter_index(registry->parameters, name);

	if (index >= 0)
		return parameter_draft_track(draft, (unsigned)index, value) ? DRAFTED
									    : DRAFTED_NO_MEMORY;
	if (is_asked_role(name, in_options))
		return target_session_of(value, &client->login->asked_role) ? DRAFTED
									    : DRAFTED_NOT;
	if (is_ignored(registry, name, in_options))
		return DRAFTED;
	if (!may_follow(registry, name))
		return DRAFTED_NOT;
	if (parameter_is_of_transaction(name))
		return DRAFTED;
	return follow(client, draft, present_name(name), value, in_options);
}

static struct failure unsupported(
	struct client_link *client, const char *name, const char *value, bool in_options)
{
	link_log_repeated(&client->link, LEVEL_WARNING,
		"unsupported startup parameter%s: %s=%s", in_options ? " in options" : "", name,
		value);
	return failure_of(in_options ? REASON_UNSUPPORTED_STARTUP_PARAMETER_IN_OPTIONS
				     : REASON_UNSUPPORTED_STARTUP_PARAMETER,
		name);
}

/* As take_setting(). Returns false, with the failure in `why`, if it cannot be added. */
static bool draft_setting(struct client_link *client, struct parameter_draft *draft,
	const char *name, const char *value, bool in_options, struct failure *why)
{
	switch (take_setting(client, draft, name, value, in_options)) {
	case DRAFTED:
		return true;
	case DRAFTED_NOT:
		*why = unsupported(client, name, value, in_options);
		return false;
	case DRAFTED_NO_MEMORY:
		break;
	}
	*why = failure_of(REASON_NO_MEMORY);
	return false;
}

/* Returns whether a walk over parameters has ended without an error; if not, sets `why`. */
static bool has_ended(enum startup_step step, struct failure *why)
{
	if (step == STARTUP_END)
		return true;
	*why = failure_of(
		step == STARTUP_BROKEN ? REASON_UNSUPPORTED_OPTIONS : REASON_NO_MEMORY);
	return false;
}

static bool draft_walk(struct client_link *client, struct parameter_draft *draft,
	struct startup_settings *walk, struct failure *why)
{
	enum startup_step step;
	const char *name, *value;

	while ((step = startup_settings_next(walk, &name, &value)) == STARTUP_PARAMETER) {
		if (!draft_setting(client, draft, name, value, walk->in_options, why))
			return false;
	}
	return has_ended(step, why);
}

/*
 * Add the parameters of the message in their order; those in `options` too, unless
 * wanted->options is NULL.
 */
static bool draft_parameters(struct client_link *client, struct parameter_draft *draft,
	const struct startup_login *wanted, const uint8_t *message, size_t total,
	struct failure *why)
{
	struct startup_settings walk;
	bool good;

	startup_settings_begin(&walk, wanted, message, total);
	good = draft_walk(client, draft, &walk, why);
	startup_settings_end(&walk);
	return good;
}

static bool draft_switches(struct client_link *client, struct parameter_draft *draft,
	const char *options, struct failure *why)
{
	struct switches_walk walk;
	enum startup_step step = STARTUP_END;
	const char *name, *value;
	bool good = true;

	switches_walk_begin(&walk, options);
	while (good && (step = switches_walk_next(&walk, &name, &value)) == STARTUP_PARAMETER)
		good = draft_setting(client, draft, name, value, true, why);
	switches_walk_end(&walk);
	return good && has_ended(step, why);
}

/*
 * As PostgreSQL: `options` are command-line switches, and the other parameters of the message
 * come after them, so that they win.
 */
static bool draft_as_server(struct client_link *client, struct parameter_draft *draft,
	const struct startup_login *wanted, const uint8_t *message, size_t total,
	struct failure *why)
{
	struct startup_login beside = *wanted;

	beside.options = NULL;
	if (wanted->options && wanted->replication == REPLICATION_NONE &&
		!draft_switches(client, draft, wanted->options, why))
		return false;
	return draft_parameters(client, draft, &beside, message, total, why);
}

/* Draft all parameters of the client. Returns false, with the failure in `why`, if it cannot. */
static bool draft_all(struct client_link *client, struct parameter_draft *draft,
	const struct startup_login *wanted, const uint8_t *message, size_t total,
	struct failure *why)
{
	const struct settings *settings = link_registry(&client->link)->process->settings;
	const bool good = settings->startup_parameters == STARTUP_FOLLOW
		? draft_as_server(client, draft, wanted, message, total, why)
		: draft_parameters(client, draft, wanted, message, total, why);

	if (!good || !settings->application_name_add_host || add_host(client, draft))
		return good;
	*why = failure_of(REASON_NO_MEMORY);
	return false;
}

bool client_parameters_take(struct client_link *client, const struct startup_login *wanted,
	const uint8_t *message, size_t total)
{
	struct parameter_draft draft;
	struct failure why;

	parameter_draft_begin(&draft, link_registry(&client->link)->parameters);
	if (!draft_all(client, &draft, wanted, message, total, &why)) {
		parameter_draft_drop(&draft);
		client_close(client, &why);
		return false;
	}
	if (link_take_parameters(&client->link, parameter_draft_end(&draft)))
		return true;
	client_close_for(client, REASON_NO_MEMORY);
	return false;
}
