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

	return network_list_has(&registry->process->sources.proxies, address) ||
		network_list_has(&registry->process->sources.proxies, &unmapped);
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
	return !network_list_has(&link_registry(&client->link)->process->sources.exempt,
		out->family == AF_INET ? out : remote);
}

/* --- sources ------------------------------------------------------------------------------ */

static unsigned hash_of(struct sources *sources, const struct address *address)
{
	return (unsigned)keyed_hash_of(&sources->hash, address, sizeof(*address));
}

static struct source *find(struct sources *sources, const struct address *address)
{
	struct source *found = NULL;
	const unsigned hash = hash_of(sources, address);

	HASH_FIND_BYHASHVALUE(
		by_address, sources->by_address, address, sizeof(*address), hash, found);
	return found;
}

/* Find or make it. Returns NULL when out of memory. */
static struct source *open_source(struct sources *sources, const struct address *address)
{
	struct source *source = find(sources, address);
	const unsigned hash = hash_of(sources, address);

	if (source)
		return source;
	source = calloc(1, sizeof(*source));
	if (!source)
		return NULL;
	source->address = *address;
	HASH_ADD_BYHASHVALUE(by_address, sources->by_address, address, sizeof(source->address),
		hash, source);
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
	const struct registry *registry = link_registry(&client->link);
	struct sources *sources = &registry->process->sources;
	struct source *source;
	struct address address;

	if (settings_of(registry)->max_client_conn_per_address == 0 ||
		client->counted_by_address || !source_of(client, &address))
		return;
	lock_take(&sources->lock);
	source = open_source(sources, &address);
	if (source)
		source->clients++;
	lock_give(&sources->lock);
	/* Without memory for the count the client is not limited. */
	client->counted_by_address = source != NULL;
}

void sources_give(struct client_link *client)
{
	sources_forget(link_registry(&client->link)->process, &client->link.remote,
		client->counted_by_address);
	client->counted_by_address = false;
}

void sources_forget(struct process *process, const struct address *remote, bool is_counted)
{
	struct sources *sources = &process->sources;
	const struct address address = address_source(remote);
	struct source *source;

	if (!is_counted)
		return;
	lock_take(&sources->lock);
	source = find(sources, &address);
	source->clients--;
	let_go(sources, source);
	lock_give(&sources->lock);
}

void sources_move(struct client_link *client, const struct address *address)
{
	sources_give(client);
	client->link.remote = *address;
	sources_take(client);
}

bool sources_allow(const struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);
	struct sources *sources = &registry->process->sources;
	const struct address address = address_source(&client->link.remote);
	unsigned clients = 0;

	if (!client->counted_by_address)
		return true;
	lock_take(&sources->lock);
	clients = find(sources, &address)->clients;
	lock_give(&sources->lock);
	return clients <= (unsigned)settings_of(registry)->max_client_conn_per_address;
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

/* The lock is held. */
static void note_failure(struct sources *sources, const struct address *address, usec_t now)
{
	struct source *source;
	unsigned left;

	forget_some(sources, now);
	source = open_source(sources, address);
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

void sources_login_failed(const struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);
	struct sources *sources = &registry->process->sources;
	struct address address;

	if (settings_of(registry)->auth_failure_delay == 0 || !source_of(client, &address))
		return;
	lock_take(&sources->lock);
	note_failure(sources, &address, loop_now(registry->loop));
	lock_give(&sources->lock);
}

/* How many failures of this address count now. */
static unsigned count_failures(
	struct sources *sources, const struct address *address, usec_t now)
{
	const struct source *source;
	unsigned left = 0;

	lock_take(&sources->lock);
	source = TAILQ_EMPTY(&sources->failed) ? NULL : find(sources, address);
	if (source && source->failures > 0)
		left = failures_left(source, now);
	lock_give(&sources->lock);
	return left;
}

usec_t sources_delay(const struct client_link *client)
{
	const struct registry *registry = link_registry(&client->link);
	const struct settings *settings = settings_of(registry);
	const usec_t most = settings->client_login_timeout / 2;
	struct address address;
	unsigned left;
	usec_t delay;

	if (settings->auth_failure_delay == 0 || !source_of(client, &address))
		return 0;
	left = count_failures(&registry->process->sources, &address, loop_now(registry->loop));
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

static void count_again(const struct registry *registry)
{
	struct link *link;

	TAILQ_FOREACH (link, &registry->links, in_registry) {
		if (link->kind != LINK_CLIENT)
			continue;
		sources_give(client_of(link));
		sources_take(client_of(link));
	}
}

bool sources_follow(struct process *process)
{
	const struct settings *settings = process->settings;
	const struct registry *each;
	const bool exempt =
		network_list_read(&process->sources.exempt, settings->per_address_exempt);
	const bool proxies =
		network_list_read(&process->sources.proxies, settings->proxy_networks);

	EACH_REGISTRY (each, process)
		count_again(each);
	if (settings->auth_failure_delay == 0)
		forget_all(&process->sources);
	return exempt && proxies;
}

bool sources_init(struct process *process, struct random *random)
{
	uint8_t key[KEYED_HASH_KEY_SIZE];

	TAILQ_INIT(&process->sources.failed);
	random_fill(random, key, sizeof(key));
	return keyed_hash_init(&process->sources.hash, key) && sources_follow(process);
}

void sources_free(struct process *process)
{
	forget_all(&process->sources);
	network_list_free(&process->sources.exempt);
	network_list_free(&process->sources.proxies);
	keyed_hash_free(&process->sources.hash);
	lock_end(&process->sources.lock);
}
