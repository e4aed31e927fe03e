/* SPDX-License-Identifier: ISC */
/*
 * pool_size = auto: how many servers a pool has, by what is known of its host and of those that share
 * it. doc/sizing.md explains the formula.
 *
 * A pure computation: session/server/host_capacity asks servers for the facts, and
 * session/pool/auto_size applies the result.
 */
#ifndef PGUSHER_MODEL_HOST_SIZING_H
#define PGUSHER_MODEL_HOST_SIZING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/clock.h"

enum {
	SIZING_LEAST = 4, /* also before anything is known */
	SIZING_UNKNOWN = 20, /* if the server does not tell: as PgBouncer's default_pool_size */
	SIZING_PER_CORE = 4, /* servers of a host, all pools together */
	SIZING_WITHOUT_CORES = 4, /* cores not known: this part of the connections, a quarter */
	SIZING_FOR_OTHERS = 10, /* this part of max_connections is left to others, a tenth */
};

/* What has told how many cores a host has. */
enum cores_source {
	CORES_UNKNOWN,
	CORES_CONFIGURED, /* host_cores of the database */
	CORES_OF_SERVER, /* files of the server's machine */
	CORES_OF_PROCESS, /* the server is on this machine: the cores that pgusher may use */
};

/* What a host is asked for: less if it has refused the question before that. */
enum capacity_question { CAPACITY_ALL, CAPACITY_CONNECTIONS, CAPACITY_NOTHING };

/* What a host has, and how its pools share it. */
struct host_capacity {
	usec_t told_at; /* the last answer; 0: none, and the rest is not known */
	unsigned max_connections; /* 0: not told */
	unsigned reserved; /* of those, for superusers and pg_use_reserved_connections */
	unsigned cores; /* 0: not known */
	enum cores_source cores_from : 8;
	enum capacity_question question : 8;
	/* As last counted by session/pool/auto_size: */
	unsigned pools; /* that compute their size */
	unsigned fixed; /* the sizes of all others */
};

struct sizing_facts {
	unsigned max_connections, reserved; /* 0: not known */
	unsigned cores; /* 0: not known */
	enum cores_source cores_from;
	unsigned fixed; /* connections of pools with a number */
	unsigned pools, processes; /* that share the host; at least 1 */
	unsigned reserve; /* reserve_pool_size of the pool */
	unsigned most; /* auto_pool_max */
	/* Limits of other kinds; 0: none. */
	unsigned role_limit, database_limit; /* the pool's share of these */
	unsigned cap; /* max_db_connections and the like */
	unsigned refused_at; /* servers that the pool had when the server accepted no more */
};

/* What has decided. */
enum sizing_bound {
	SIZED_BY_NOTHING, /* nothing is known */
	SIZED_BY_CORES,
	SIZED_BY_CONNECTIONS, /* max_connections */
	SIZED_BY_LEAST, /* SIZING_LEAST */
	SIZED_BY_MOST, /* auto_pool_max */
	SIZED_BY_ROLE, /* the role's CONNECTION LIMIT */
	SIZED_BY_DATABASE, /* the database's CONNECTION LIMIT */
	SIZED_BY_CAP,
	SIZED_BY_REFUSAL,
};

struct sizing {
	int size; /* 0: not computed yet */
	enum sizing_bound bound;
	unsigned wanted; /* by the cores, or by max_connections alone: all pools of the host */
	unsigned
		available; /* connections: all pools that compute their size, of all processes */
	unsigned share; /* of the pool, before any bound */
	bool is_crowded; /* `available` has decided the share, not `wanted` */
};

struct sizing sizing_compute(const struct sizing_facts *facts);

/* Append in words how the size was found. */
void sizing_explain(
	const struct sizing *sizing, const struct sizing_facts *facts, struct buffer *out);

/* A word or two for SHOW: what has decided. */
const char *sizing_bound_name(enum sizing_bound bound);

const char *cores_source_name(enum cores_source source);

#endif
