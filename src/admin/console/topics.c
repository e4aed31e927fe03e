/* SPDX-License-Identifier: ISC */
#include "admin/console/topics.h"

#include <strings.h>

/* Groups from this one on are told behind the commands: PgBouncer does not have them. */
enum { OURS = 5 };

/* In the order of SHOW HELP, which tells them in groups of one line each. */
static const struct {
	const struct topic *topic;
	unsigned group;
	const char *purpose;
} topics[] = {
	{&show_help, 0, "this list"},
	{&show_config, 0, "settings: value, default, and whether they change while running"},
	{&show_databases, 0, "databases: where they are, their sizes, limits and connections"},
	{&show_pools, 0, "pools: how many clients and servers are in each state"},
	{&show_clients, 0, "connections of clients"},
	{&show_servers, 0, "connections to servers"},
	{&show_users, 0, "users that are known, their limits and connections"},
	{&show_version, 0, "version of this program"},
	{&show_peers, 1, "processes that share the port, as configured"},
	{&show_peer_pools, 1, "cancel requests on their way to peers"},
	{&show_fds, 2, "descriptors, for a process that takes over (admins)"},
	{&show_sockets, 2, "all connections, with what they hold in buffers"},
	{&show_active_sockets, 2, "connections that hold something in buffers"},
	{&show_lists, 2, "how many there are of everything"},
	{&show_mem, 2, "memory of objects that come in numbers"},
	{&show_state, 2, "active, paused or suspended"},
	{&show_dns_hosts, 3, "host names that were looked up"},
	{&show_dns_zones, 3, "zones whose serial numbers are watched"},
	{&show_stats, 4, "counters of each database, and averages per second"},
	{&show_stats_totals, 4, "counters of each database"},
	{&show_stats_averages, 4, "averages of each database"},
	{&show_totals, 4, "counters and averages of all databases together"},
	{&show_stats_latency, OURS, "percentiles of query, transaction and wait times"},
	{&show_stats_errors, OURS, "errors of servers by SQLSTATE class"},
	{&show_statements, OURS, "prepared statements: who has them, how often they are used"},
	{&show_waits, OURS, "commands that are not answered yet, and what they wait for"},
	{&show_commands, OURS, "commands, who may give them, and what they are for"},
};

enum { TOPICS = sizeof(topics) / sizeof(topics[0]) };

const struct topic *topics_find(const char *name)
{
	for (unsigned i = 0; i < TOPICS; i++) {
		if (strcasecmp(topics[i].topic->name, name) == 0)
			return topics[i].topic;
	}
	for (const struct topic *fake = show_fakes; fake->name; fake++) {
		if (strcasecmp(fake->name, name) == 0)
			return fake;
	}
	return NULL;
}

bool topics_get(unsigned place, const struct topic **topic, const char **purpose)
{
	if (place >= TOPICS)
		return false;
	*topic = topics[place].topic;
	*purpose = topics[place].purpose;
	return true;
}

void topics_help(struct buffer *out, bool ours)
{
	unsigned group = TOPICS; /* of the topic before: none */

	for (unsigned i = 0; i < TOPICS; i++) {
		if ((topics[i].group >= OURS) != ours)
			continue;
		buffer_printf(out, "%s%s", topics[i].group != group ? "\n\tSHOW " : "|",
			topics[i].topic->name);
		group = topics[i].group;
	}
}
