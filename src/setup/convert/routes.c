/* SPDX-License-Identifier: ISC */
#include "setup/convert/routes.h"

#include <string.h>

struct route_key {
	const struct target *target;
	const struct source_node *node;
	const char *value;
	struct route_key *next;
};

struct route *route_add(struct conversion *conversion, const struct source_node *node,
	const char *database, const char *user)
{
	struct route *route = NULL;

	if (conversion->route_count < ROUTES_MOST)
		route = source_take(conversion->source, sizeof(*route));
	if (!route) {
		conversion->failed = true;
		return NULL;
	}
	conversion->route_count++;
	route->database = database;
	route->user = user;
	route->node = node;
	if (conversion->last_route)
		conversion->last_route->next = route;
	else
		conversion->routes = route;
	conversion->last_route = route;
	return route;
}

void route_add_key(struct conversion *conversion, struct route *route,
	const struct target *target, const struct source_node *node, const char *value)
{
	struct route_key *key;

	if (!route)
		return;
	key = source_take(conversion->source, sizeof(*key));
	if (!key) {
		conversion->failed = true;
		return;
	}
	*key = (struct route_key){target, node, value, NULL};
	if (route->last_key)
		route->last_key->next = key;
	else
		route->keys = key;
	route->last_key = key;
}

/* The name that tells which keys are the same. */
static const char *name_of(const struct target *target)
{
	return target->database ? target->database
		: target->user	? target->user
				: target->setting;
}

static const struct route_key *find_key(const struct route *route, const struct target *target)
{
	const struct route_key *key = route->keys;

	while (key && strcmp(name_of(key->target), name_of(target)) != 0)
		key = key->next;
	return key;
}

static bool is_of(const struct route *route, const char *database)
{
	return strcmp(route->database, database) == 0;
}

/* The route whose keys become those of the database; NULL if this is not its first route. */
static const struct route *base_of(
	const struct conversion *conversion, const struct route *first)
{
	for (const struct route *route = conversion->routes; route != first;
		route = route->next) {
		if (is_of(route, first->database))
			return NULL;
	}
	for (const struct route *route = first; route; route = route->next) {
		if (!route->user && is_of(route, first->database))
			return route;
	}
	return first;
}

/* Another database in which the user has no such key, or another value of it; NULL: none. */
static const struct route *find_other(const struct conversion *conversion,
	const struct route *route, const struct route_key *key, bool with_key)
{
	for (const struct route *other = conversion->routes; other; other = other->next) {
		const struct route_key *same;

		if (!other->user || strcmp(other->user, route->user) != 0 ||
			is_of(other, route->database))
			continue;
		same = find_key(other, key->target);
		if (with_key ? same && strcmp(same->value, key->value) != 0 : !same)
			return other;
	}
	return NULL;
}

static void put_user_key(
	struct conversion *conversion, const struct route *route, const struct route_key *key)
{
	const struct route *other = find_other(conversion, route, key, true);

	if (other)
		conversion_lose(conversion, key->node,
			"user %.63s has another one in database %.63s, and here one %s counts in "
			"all databases",
			route->user, other->database, key->target->user);
	else if (conversion_put(conversion, key->node, DRAFT_USERS, route->user,
			 key->target->user, key->value) &&
		find_other(conversion, route, key, false))
		conversion_note(conversion, key->node,
			"counts for user %.63s in all databases here", route->user);
}

static void write_base_key(
	struct conversion *conversion, const struct route *base, const struct route_key *key)
{
	const struct target *target = key->target;

	if (target->database)
		conversion_put(conversion, key->node, DRAFT_DATABASES, base->database,
			target->database, key->value);
	else if (target->user && base->user)
		put_user_key(conversion, base, key);
	else if (target->setting)
		conversion_set(conversion, key->node, target->setting, key->value);
	else
		conversion_lose(conversion, key->node,
			"%s is a key of named users only: add a line for each in [users]",
			target->user);
}

static void write_other_key(struct conversion *conversion, const struct route *base,
	const struct route *route, const struct route_key *key)
{
	const struct target *target = key->target;
	const char *present = target->database ? draft_key(conversion->draft, DRAFT_DATABASES,
							 base->database, target->database)
					       : NULL;

	if (present && strcmp(present, key->value) == 0)
		return;
	if (target->user && route->user)
		put_user_key(conversion, route, key);
	else if (target->database)
		conversion_put(conversion, key->node, DRAFT_DATABASES, base->database,
			target->database, key->value);
	else if (target->setting)
		conversion_set(conversion, key->node, target->setting, key->value);
}

/*
 * The first user that has the defaults of the base: the database has what that user has. NULL:
 * the base is for users of its own.
 */
static const struct route *first_user_of(
	const struct conversion *conversion, const struct route *base)
{
	const struct route *route = base->only_defaults ? conversion->routes : NULL;

	while (route && (route == base || !is_of(route, base->database)))
		route = route->next;
	return route;
}

static void write_keys(struct conversion *conversion, const struct route *base)
{
	const struct route *first = first_user_of(conversion, base);

	for (const struct route_key *key = first ? first->keys : NULL; key; key = key->next)
		write_base_key(conversion, first, key);
	for (const struct route_key *key = base->keys; key; key = key->next) {
		if (!first || !find_key(first, key->target))
			write_base_key(conversion, base, key);
	}
	for (const struct route *route = conversion->routes; route; route = route->next) {
		if (route == base || route == first || !is_of(route, base->database))
			continue;
		for (const struct route_key *key = route->keys; key; key = key->next)
			write_other_key(conversion, base, route, key);
	}
}

static void write_database(struct conversion *conversion, const struct route *base)
{
	char why[256];

	if (draft_add_entry(
		    conversion->draft, DRAFT_DATABASES, base->database, why, sizeof(why)))
		write_keys(conversion, base);
	else
		conversion_lose(conversion, base->node, "not possible as a database: %s", why);
}

void routes_write(struct conversion *conversion)
{
	for (const struct route *route = conversion->routes; route; route = route->next) {
		const struct route *base = base_of(conversion, route);

		if (base)
			write_database(conversion, base);
	}
}
