/* SPDX-License-Identifier: ISC */
/*
 * Where clients come from: how many connections an address has (max_client_conn_per_address),
 * and how many of its logins have failed lately (auth_failure_delay); and which of them are proxies
 * (proxy_networks).
 *
 * A source is an IPv4 address or an IPv6 network of 64 bits (address_source). Unix sockets and
 * the networks of per_address_exempt have none. With both settings off nothing is kept.
 * Otherwise there is memory for each source with an open connection, and for at most
 * SOURCES_FAILED_MOST others: beyond that the oldest failure is forgotten.
 *
 * All operations take constant time, except for sources_follow().
 */
#ifndef PGUSHER_MODEL_SOURCES_H
#define PGUSHER_MODEL_SOURCES_H

#include <bsd/sys/queue.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/lock.h"
#include "crypt/keyed_hash.h"
#include "net/network.h"

enum { SOURCES_FAILED_MOST = 16384 };

struct client_link;
struct process;
struct random;
struct registry;
struct source;

TAILQ_HEAD(source_list, source);

struct sources {
	struct lock lock; /* of all but the networks, which change while no other thread runs */
	struct keyed_hash hash; /* keyed, since clients choose their addresses */
	struct source *by_address; /* uthash, by struct address */
	struct source_list failed; /* those with failures, the oldest first */
	unsigned failed_count;
	struct network_list exempt; /* of per_address_exempt */
	struct network_list proxies; /* of proxy_networks */
};

/* Initialise the process's sources by its settings. Returns false when out of memory. */
bool sources_init(struct process *process, struct random *random);

/* Free all of them. */
void sources_free(struct process *process);

/*
 * The settings have changed: count the clients of all open links by the new ones, and forget
 * failures if they do not matter any more. Returns false when out of memory: there are no exempt
 * networks or no proxies then.
 */
bool sources_follow(struct process *process);

/* Returns whether a PROXY header is taken from this address. */
bool sources_is_proxy(const struct registry *registry, const struct address *address);

/* Count a client, whose address is set, or uncount it, if it is counted. */
void sources_take(struct client_link *client);
void sources_give(struct client_link *client);

/* Uncount a client of this address that has no link any more, if it is counted. */
void sources_forget(struct process *process, const struct address *remote, bool is_counted);

/* Replace the address of a client, and count the client there instead. */
void sources_move(struct client_link *client, const struct address *address);

/* Returns whether the client's address has at most max_client_conn_per_address clients. */
bool sources_allow(const struct client_link *client);

/* Logging in as this client has failed because of what it has proved to be, or not. */
void sources_login_failed(const struct client_link *client);

/*
 * Returns how long the login that this client begins now has to wait: auth_failure_delay after
 * the first failure of its address, and twice as long after each further one, up to 32 times;
 * but at most half of client_login_timeout, so that the right password is always accepted in
 * time. Each minute without a failure one failure is forgotten. 0: not at all.
 */
usec_t sources_delay(const struct client_link *client);

#endif
