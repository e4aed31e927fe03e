/* SPDX-License-Identifier: ISC */
#include "model/link.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/client_link.h"
#include "model/held.h"
#include "model/pool.h"
#include "model/registry.h"

const char *link_database_name(const struct link *link)
{
	const struct client_link *client = (const struct client_link *)link;

	if (link->pool)
		return link->pool->database->name;
	/* The first of its kind has no pool yet; an unknown user never has one, and is not counted. */
	if (link->kind == LINK_CLIENT && client->database && client->counted_in_user)
		return client->database->name;
	return "(nodb)";
}

const char *link_user_name(const struct link *link)
{
	const struct client_link *client = (const struct client_link *)link;

	if (link->kind == LINK_SERVER)
		return link->pool->user->name;
	if (client->user)
		return client->user->name;
	return "(nouser)";
}

const char *link_prefix(const struct link *link, char *out, size_t size)
{
	char address[ADDRESS_TEXT_SIZE];
	char database[96], user[192];
	const char *name = link_database_name(link);

	text_escape(database, sizeof(database), name, strlen(name));
	name = link_user_name(link);
	text_escape(user, sizeof(user), name, strlen(name));
	snprintf(out, size, "%c-0x%llx: %s/%s@%s", link->kind == LINK_CLIENT ? 'C' : 'S',
		link_handle(link), database, user, address_text(&link->remote, address));
	return out;
}

void link_log(const struct link *link, enum log_level level, const char *format, ...)
{
	char prefix[512], text[1536], escaped[1536];
	va_list arguments;

	if (!log_enabled(level))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* Half of what there is to say was said by peers first. */
	text_escape(escaped, sizeof(escaped), text, strlen(text));
	log_write(level, "%s %s", link_prefix(link, prefix, sizeof(prefix)), escaped);
}

/* --- held bytes --------------------------------------------------------------------------- */

bool link_hold(struct link *link, const void *data, size_t length)
{
	struct registry *registry = link_registry(link);
	const size_t wanted = link->held_length + length;
	uint32_t capacity = HELD_SMALL;
	uint8_t *bytes;

	if (wanted > link->held_capacity) {
		if (wanted > HELD_MAX)
			return false;
		while (capacity < wanted)
			capacity *= 2;
		bytes = capacity == HELD_SMALL ? slab_take(&registry->helds) : malloc(capacity);
		if (!bytes)
			return false;
		if (link->held_length)
			memcpy(bytes, link->held, link->held_length);
		held_free(registry, link->held, link->held_capacity);
		link->held = bytes;
		link->held_capacity = capacity;
	}
	if (length)
		memcpy(link->held + link->held_length, data, length);
	link->held_length = (uint32_t)wanted;
	return true;
}

void held_free(struct registry *registry, uint8_t *bytes, uint32_t capacity)
{
	if (!bytes)
		return;
	if (capacity == HELD_SMALL)
		slab_give(&registry->helds, bytes);
	else
		free(bytes);
}

void link_drop_held(struct link *link)
{
	held_free(link_registry(link), link->held, link->held_capacity);
	link->held = NULL;
	link->held_length = link->held_capacity = 0;
}
