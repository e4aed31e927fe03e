/* SPDX-License-Identifier: ISC */
#include "session/client_parameters.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/text.h"
#include "session/auth/method.h"
#include "session/ending.h"
#include "wire/parameter_draft.h"

/* With the address; who reads logs by column widths knows it. */
enum { APPLICATION_NAME_SIZE = 400 };

/* `NAME - ADDRESS`, so that the database's own views tell where a session comes from. */
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
	/* A name cut within a character is none that a server takes. */
	snprintf(text, sizeof(text), "%.*s - %s", (int)text_utf8_cut(name, length, room), name,
		address);
	return parameter_draft_track(draft, (unsigned)index, text);
}

static bool is_ignored(const struct registry *registry, const char *name, bool in_options)
{
	const char *ignored = registry->settings->ignore_startup_parameters;

	return text_list_has(ignored, name) ||
		(in_options && text_list_has(ignored, "options"));
}

/* What concerns one transaction only has no effect at the start of a session. */
static bool has_no_effect(const char *name)
{
	return strcasecmp(name, "transaction_isolation") == 0 ||
		strcasecmp(name, "transaction_read_only") == 0 ||
		strcasecmp(name, "transaction_deferrable") == 0;
}

/* Does the configuration allow to follow it, and can it be taken back from a session at all? */
static bool may_follow(const struct registry *registry, const char *name)
{
	return registry->settings->startup_parameters == STARTUP_FOLLOW &&
		strcasecmp(name, "seed") != 0;
}

/* The client will have to be told which names stood in its options, if one is not known. */
static enum drafted follow(struct client_link *client, struct parameter_draft *draft,
	const char *name, const char *value, bool in_options)
{
	if (in_options && !buffer_append(&client->login->option_names, name, strlen(name) + 1))
		return DRAFTED_NO_MEMORY;
	return parameter_draft_follow(draft, name, value);
}

/* One setting of the startup message. */
static enum drafted take_setting(struct client_link *client, struct parameter_draft *draft,
	const char *name, const char *value, bool in_options)
{
	const struct registry *registry = link_registry(&client->link);
	const int index = parameter_index(registry->parameters, name);

	if (index >= 0)
		return parameter_draft_track(draft, (unsigned)index, value) ? DRAFTED
									    : DRAFTED_NO_MEMORY;
	if (is_ignored(registry, name, in_options))
		return DRAFTED;
	if (!may_follow(registry, name))
		return DRAFTED_NOT;
	if (has_no_effect(name))
		return DRAFTED;
	return follow(client, draft, name, value, in_options);
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

/* All settings, as far as they go; false: `why` says what is wrong with them. */
static bool draft_settings(struct client_link *client, struct parameter_draft *draft,
	struct startup_settings *walk, struct failure *why)
{
	enum startup_step step;
	const char *name, *value;

	while ((step = startup_settings_next(walk, &name, &value)) == STARTUP_PARAMETER) {
		switch (take_setting(client, draft, name, value, walk->in_options)) {
		case DRAFTED:
			continue;
		case DRAFTED_NOT:
			*why = unsupported(client, name, value, walk->in_options);
			return false;
		case DRAFTED_NO_MEMORY:
			*why = failure_of(REASON_NO_MEMORY);
			return false;
		}
	}
	*why = failure_of(
		step == STARTUP_BROKEN ? REASON_UNSUPPORTED_OPTIONS : REASON_NO_MEMORY);
	return step == STARTUP_END;
}

bool client_parameters_take(struct client_link *client, const struct startup_login *wanted,
	const uint8_t *message, size_t total)
{
	struct registry *registry = link_registry(&client->link);
	struct parameter_draft draft;
	struct startup_settings walk;
	struct parameters *set = NULL;
	struct failure why;
	bool good;

	parameter_draft_begin(&draft, registry->parameters);
	startup_settings_begin(&walk, wanted, message, total);
	good = draft_settings(client, &draft, &walk, &why);
	startup_settings_end(&walk);
	if (good) {
		why = failure_of(REASON_NO_MEMORY);
		good = !registry->settings->application_name_add_host ||
			add_host(client, &draft);
	}
	if (good)
		set = parameter_draft_end(&draft);
	if (!set) {
		parameter_draft_drop(&draft);
		client_close(client, &why);
		return false;
	}
	parameters_unref(client->link.parameters);
	client->link.parameters = set;
	return true;
}
