/* SPDX-License-Identifier: ISC */
#include "model/sources.h"

#include <stdlib.h>

#include "model/registry.h"

#define FORGET (60 * USEC_PER_SEC) /* after this time one failure is forgotten */

/* More failures are counted as this many: the delay is 2^5 times the first. */
enum { FAILURES_MOST = 6 };

struct source {
	UT_hash_handle by_address;
	struct address address;
	unsigned clients;
	unsigned failures; /* at failed_at; 0: not in the list */
	usec_t failed_at;
	TAILQ_ENTRY(source) in_failed;
};

static const struct settings *settings_of(const struct registry *registry)
{
	return registry->process->settings;
}

/* --- networks ----------------------------------------------------------------------------- */

bool sources_is_proxy(const struct registry *registry, const struct address *address)
{
	const struct address unmapped = address_unmapped(address);

	return network_list_has(&registry->sources.proxies, address) ||
		network_list_has(&registry->sources.proxies, &unmapped);
}

/*
 * Write the source of the client. Returns false if it has none. Networks are compared with the
 * whole address, which an IPv6 source is only a part of.
 */
static bool source_of(const struct client_link *client, struct address *out)
{
	const struct address *remote = &client->link.remote;

	*out = address_source(remote);
	if (out->family != AF_INET && out->family != AF_INET6)
		return false;
	return !network_list_has(&link_registry(&client->link)->sources.exempt,
		out->family == AF_INET ? out : remote);
}

/* --- sources ------------------------------------------------------------------------------ */

static unsigned hash_of(struct registry *registry, const struct address *address)
{
	return (unsigned)keyed_hash_of(&registry->name_hash, address, sizeof(*address));
}

static struct source *find(struct registry *registry, const struct address *address)
{
	struct source *found = NULL;
	const unsigned hash = hash_of(registry, address);

	HASH_FIND_BYHASHVALUE(by_address, registry->sources.by_address, address,
		sizeof(*address), hash, found);
	return found;
}

/* Find or make it. Returns NULL when out of memory. */
static struct source *open_source(struct registry *registry, const struct address *address)
{
	struct source *source = find(registry, address);
	const unsigned hash = hash_of(registry, address);

	if (source)
		return source;
	source = calloc(1, sizeof(*source));
	if (!source)
		return NULL;
	source->address = *address;
	HASH_ADD_BYHASHVALUE(by_address, registry->sources.by_address, address,
		sizeof(source->address), hash, source);
	if (source->by_address.tbl) /* else uthash was out of memory */
		return source;
	free(source);
	return NULL;
}

static void let_go(struct sources *sources, struct source *source)
{
	if (source->clients > 0 || source->failures > 0)
		return;
	HASH_DELETE(by_address, sources->by_address, source);
	free(source);
}

/* --- connections -------------------------------------------------------------------------- */

void sources_take(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	struct source *source;
	struct address address;

	if (settings_of(registry)->max_client_conn_per_address == 0 ||
		client->counted_by_address || !source_of(client, &address))
		return;
	source = open_source(registry, &address);
	if (!source)
		return; /* without memory for the count the client is not limited */
	source->clients++;
	client->counted_by_address = true;
}

void sources_give(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	const struct address address = address_source(&client->link.remote);
	struct source *source;

	if (!client->counted_by_address)
		return;
	client->counted_by_address = false;
	source = find(registry, &address);
	source->clients--;
	let_go(&registry->sources, source);
}

void sources_move(struct client_link *client, const struct address *address)
{
	sources_give(client);
	client->link.remote = *address;
	sources_take(client);
}

bool sources_allow(const struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	const struct address address = address_source(&client->link.remote);

	return !client->counted_by_address ||
		find(registry, &address)->clients <=
		(unsigned)settings_of(registry)->max_client_conn_per_address;
}

/* --- failures ----------------------------------------------------------------------------- */

static unsigned failures_left(const struct source *source, usec_t now)
{
	const unsigned forgotten = (unsigned)((now - source->failed_at) / FORGET);

	return source->failures > forgotten ? source->failures - forgotten : 0;
}

static void forget(struct sources *sources, struct source *source)
{
	TAILQ_REMOVE(&sources->failed, source, in_failed);
	sources->failed_count--;
	source->failures = 0;
	let_go(sources, source);
}

/* Forget what is due; each call for a failure makes at most one and forgets up to two. */
static void forget_some(struct sources *sources, usec_t now)
{
	for (unsigned i = 0; i < 2; i++) {
		struct source *oldest = TAILQ_FIRST(&sources->failed);

		if (!oldest ||
			(sources->failed_count < SOURCES_FAILED_MOST &&
				failures_left(oldest, now) > 0))
			return;
		forget(sources, oldest);
	}
}

void sources_login_failed(const struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	struct sources *sources = &registry->sources;
	const usec_t now = loop_now(registry->loop);
	struct source *source;
	struct address address;
	unsigned left;

	if (settings_of(registry)->auth_failure_delay == 0 || !source_of(client, &address))
		return;
	forget_some(sources, now);
	source = open_source(registry, &address);
	if (!source)
		return;
	left = source->failures > 0 ? failures_left(source, now) : 0;
	if (source->failures > 0)
		TAILQ_REMOVE(&sources->failed, source, in_failed);
	else
		sources->failed_count++;
	TAILQ_INSERT_TAIL(&sources->failed, source, in_failed);
	source->failures = left < FAILURES_MOST ? left + 1 : FAILURES_MOST;
	source->failed_at = now;
}

usec_t sources_delay(const struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	const struct settings *settings = settings_of(registry);
	const usec_t most = settings->client_login_timeout / 2;
	struct source *source;
	struct address address;
	unsigned left;
	usec_t delay;

	if (settings->auth_failure_delay == 0 || TAILQ_EMPTY(&registry->sources.failed) ||
		!source_of(client, &address))
		return 0;
	source = find(registry, &address);
	left = source && source->failures > 0 ? failures_left(source, loop_now(registry->loop))
					      : 0;
	if (left == 0)
		return 0;
	delay = settings->auth_failure_delay << (left - 1);
	return most > 0 && delay > most ? most : delay;
}

/* --- all of them -------------------------------------------------------------------------- */

static void forget_all(struct sources *sources)
{
	struct source *source;

	while ((source = TAILQ_FIRST(&sources->failed)) != NULL)
		forget(sources, source);
}

bool sources_follow(struct registry *registry)
{
	const struct settings *settings = settings_of(registry);
	const bool exempt =
		network_list_read(&registry->sources.exempt, settings->per_address_exempt);
	const bool proxies =
		network_list_read(&registry->sources.proxies, settings->proxy_networks);
	struct link *link;

	TAILQ_FOREACH (link, &registry->links, in_registry) {
		if (link->kind != LINK_CLIENT)
			continue;
		sources_give(client_of(link));
		sources_take(client_of(link));
	}
	if (settings->auth_failure_delay == 0)
		forget_all(&registry->sources);
	return exempt && proxies;
}

bool sources_init(struct registry *registry)
{
	TAILQ_INIT(&registry->sources.failed);
	return sources_follow(registry);
}

void sources_free(struct registry *registry)
{
	forget_all(&registry->sources);
	network_list_free(&registry->sources.exempt);
	network_list_free(&registry->sources.proxies);
}
