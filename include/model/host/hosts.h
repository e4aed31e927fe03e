/* SPDX-License-Identifier: ISC */
/*
 * What is known of each host with PostgreSQL, in one registry: its role, and whether it answers.
 *
 * A host is one item of a list of hosts, an address or the folder of a Unix socket, with a port; of a
 * name each address is a host. All databases of the registry that list it share what is known.
 * pgusher decides no role: it only follows what servers say of themselves.
 */
#ifndef PGUSHER_MODEL_HOST_HOSTS_H
#define PGUSHER_MODEL_HOST_HOSTS_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "model/host/sizing.h"
#include "net/address.h"
#include "net/resolver.h"
#include "net/wheel.h"

struct server_link;

/* PostgreSQL: in_hot_standby, which servers report since version 14. */
enum host_role { HOST_ROLE_UNKNOWN, HOST_ROLE_PRIMARY, HOST_ROLE_STANDBY };

/* What has told of the role. */
enum host_teller { HOST_TOLD_BY_LOGIN, HOST_TOLD_BY_REPORT, HOST_TOLD_BY_PROBE };

/* Which question the host answers: see session/server/host_probe. */
enum host_question { HOST_ASKED_ALL, HOST_ASKED_ROLE, HOST_ASKED_NOTHING };

/* The longest text of an error that is kept, with its NUL. */
enum { HOST_ERROR_SIZE = 160 };

/* How far its WAL is, as the last probe told. Positions are bytes since the begin of the system. */
struct host_progress {
	uint64_t position; /* written, or replayed by a standby */
	uint64_t received; /* by a standby; 0: not known */
	usec_t replay_age; /* standby: age of the last transaction that it has replayed */
	usec_t told_at; /* when this was told */
	uint64_t behind; /* standby: bytes behind its primary, or behind what it has received */
	bool known;
};

struct host {
	TAILQ_ENTRY(host) in_hosts;
	struct host *next_in_bucket;
	uint64_t number; /* among all hosts that the process knew, from 1: never used again */
	enum host_role role : 8;
	enum host_teller told_by : 8; /* valid if the role is known */
	enum host_question question : 8;
	bool read_only; /* default_transaction_read_only in its configuration */
	bool superseded; /* a primary, but another host of its system was promoted later */
	bool is_name; /* stands for a name, the addresses of which are hosts; no server uses it */
	bool listed; /* by a database: see session/server/host_choice */
	bool watched; /* by a database that has a list, or asks for a role */
	bool gone; /* its name has the address no longer: freed by hosts_sweep() */
	bool ask_now; /* something has happened there: it is to be probed at once */
	uint16_t port;
	struct address address; /* of a name; AF_UNSPEC otherwise */
	struct resolver_query lookup; /* of a name that is watched */
	usec_t role_since; /* when the role was first known, or last changed; 0: it is unknown */
	usec_t failed_since; /* the first of the failures without an answer between them; 0: none */
	usec_t next_try; /* valid if failed_since: no login tries it before, if it has another host */
	unsigned failures; /* since failed_since */
	struct server_link
		*prober; /* it is dead, and this login tries it: others do not; or NULL */
	struct server_link
		*watch; /* pgusher's own connection to it: session/pool/host_watch; or NULL */
	usec_t doubted_at; /* when its servers were last to be asked for their role; 0: never */
	usec_t asked_at, told_at; /* the last probe, and the last answer to one; 0: none */
	uint64_t system; /* PostgreSQL's system identifier; 0: not known */
	uint32_t timeline; /* of a primary; 0: not known */
	struct host_progress progress;
	struct host_capacity capacity; /* for pool_size = auto */
	unsigned servers; /* links that are connected to it, or connecting */
	/* Servers with a client: in the advisor's last sample, and as it counts them now. */
	unsigned active, counting;
	usec_t connect_time; /* how long the last successful login took; 0: none yet */
	char error[HOST_ERROR_SIZE]; /* of the last failure; empty: none */
	char name[]; /* as it is configured */
};

enum { HOST_BUCKETS = 1024 };

/* A TAILQ_HEAD of all hosts, and where those of an item are found: each process has few or thousands. */
struct host_list {
	struct host *tqh_first;
	struct host **tqh_last;
	uint64_t *last; /* the number of the last one, which the lists of all workers share */
	struct host *buckets[HOST_BUCKETS];
};

/* An item of a list of hosts: so many bytes, and its port. */
struct host_item {
	const char *name;
	size_t length;
	uint16_t port;
};

/* Is the host the item's, or an address of its name? */
bool host_is_of(const struct host *host, const struct host_item *item);

/*
 * Returns the host of the item, with this address of its name or NULL; makes it if it is new. NULL when
 * out of memory. It lives until hosts_prune(), hosts_free() or hosts_sweep(); while a server uses it
 * longer than that.
 */
struct host *hosts_open(
	struct host_list *hosts, const struct host_item *item, const struct address *address);

/* Returns the host of the item with this address of its name or NULL; NULL if there is none. */
struct host *hosts_find(const struct host_list *hosts, const struct host_item *item,
	const struct address *address);

/*
 * Walk the hosts of the item: NULL for the first one; returns NULL after the last one.
 */
struct host *hosts_next(
	const struct host_list *hosts, const struct host_item *item, const struct host *after);

/* Returns the host of this name, address and port that is not gone; NULL if there is none. */
struct host *hosts_like(const struct host_list *hosts, const struct host *host);

/* The name has this address no longer: its host is not found any more. */
void hosts_leave(struct host_list *hosts, const char *name, const struct address *address);

/* Free such hosts that no server uses any more. Not to be called while servers may be closed. */
void hosts_sweep(struct host_list *hosts);

/* Free the hosts that are not listed, and that no server uses. */
void hosts_prune(struct host_list *hosts);

/* Free all. No server may use one any more. */
void hosts_free(struct host_list *hosts);

/* The server connects to this host (or none: NULL) from now on; if it is dead, as its only prober. */
void host_use(struct server_link *server, struct host *host);

/*
 * A server at the host has told its role. Returns whether this differs from what was known: the caller
 * logs it.
 */
bool host_set_role(struct host *host, enum host_role role, enum host_teller teller, usec_t now);

/* The host has answered; a login that was successful has taken this time, or 0. */
void host_answered(struct host *host, usec_t took);

/* The host cannot be reached, or has not answered: with each failure logins pause longer. */
void host_failed(struct host *host, const char *error, usec_t now, struct random *random);

/* Is the host dead, and not to be tried now? Other hosts of the list are tried in its place. */
bool host_is_avoided(const struct host *host, usec_t now);

/* After a probe of the host: compute how far it is behind, or how far its standbys are. */
void hosts_compare_progress(const struct host_list *hosts, struct host *host);

/* The text of host, address and port, for logs: `name:port`, or `name (address):port`. */
enum { HOST_TEXT_SIZE = 256 + ADDRESS_TEXT_SIZE };
const char *host_text(const struct host *host, char out[HOST_TEXT_SIZE]);

const char *host_teller_name(const struct host *host);
const char *host_role_name(const struct host *host);

#endif
