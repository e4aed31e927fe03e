/* SPDX-License-Identifier: ISC */
/*
 * What SHOW can show. Each topic is a row: a name, its columns, and where its rows come from: a
 * function that adds all of them from what it reads in the model, or, where they may be many, two
 * that note what there is to tell of and tell of one thing (admin/show/telling). Columns, their order
 * and types are an interface: programs read them by position.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_TOPICS_H
#define PGUSHER_ADMIN_CONSOLE_TOPICS_H

#include "admin/console/commands.h"
#include "admin/show/result.h"
#include "admin/show/telling.h"

struct topic {
	const char *name; /* upper case */
	const struct column *columns;
	unsigned column_count; /* 0: no result set */
	/* Add the rows, which are few; without columns: say what there is to say. */
	void (*fill)(struct result *result, const struct command_call *call);
	enum right right;
	const struct topic_walk *walk; /* instead of `fill` */
};

/* A topic whose columns stand in an array. */
#define TOPIC(name, columns, fill)                                                             \
	{                                                                                      \
		name, columns, sizeof(columns) / sizeof((columns)[0]), fill, RIGHT_STATS, NULL \
	}

/* The same for one with many rows. */
#define WALKED_TOPIC(name, columns, walk)                                                      \
	{                                                                                      \
		name, columns, sizeof(columns) / sizeof((columns)[0]), NULL, RIGHT_STATS, walk \
	}

/* One file per family. */
extern const struct topic show_help, show_commands;
extern const struct topic show_version, show_state, show_lists, show_mem;
extern const struct topic show_config;
extern const struct topic show_databases, show_pools, show_users;
extern const struct topic show_clients, show_servers, show_sockets, show_active_sockets;
extern const struct topic show_stats, show_stats_totals, show_stats_averages, show_totals;
extern const struct topic show_stats_latency, show_stats_errors;
extern const struct topic show_peers, show_peer_pools;
extern const struct topic show_dns_hosts, show_dns_zones;
extern const struct topic show_waits;
extern const struct topic show_statements;
extern const struct topic show_fds;

/* What drivers ask for when they connect; ends with one without a name. */
extern const struct topic show_fakes[];

/* The topic of that name, whatever its case, fakes included; NULL: there is none. */
const struct topic *topics_find(const char *name);

/* Is this a parameter that SET may set, in name only? */
bool topics_is_fake(const char *name);

/*
 * Append the lines of SHOW HELP that name the topics, each behind newline and tab: those that
 * PgBouncer has, or ours.
 */
void topics_help(struct buffer *out, bool ours);

/* Walk the topics: the name of the one at this place and what it is for. False: there is none. */
bool topics_get(unsigned place, const struct topic **topic, const char **purpose);

#endif
