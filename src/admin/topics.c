/* SPDX-License-Identifier: ISC */
#include "admin/topics.h"

#include <strings.h>

#include "wire/writer.h"

/* In the order of SHOW HELP, which tells them in groups of one line each. */
static const struct {
	const struct topic *topic;
	unsigned group;
} topics[] = {
	{&show_help, 0},
	{&show_config, 0},
	{&show_databases, 0},
	{&show_pools, 0},
	{&show_clients, 0},
	{&show_servers, 0},
	{&show_users, 0},
	{&show_version, 0},
	{&show_peers, 1},
	{&show_peer_pools, 1},
	{&show_sockets, 2},
	{&show_active_sockets, 2},
	{&show_lists, 2},
	{&show_mem, 2},
	{&show_state, 2},
	{&show_dns_hosts, 3},
	{&show_dns_zones, 3},
	{&show_stats, 4},
	{&show_stats_totals, 4},
	{&show_stats_averages, 4},
	{&show_totals, 4},
	{&show_waits, 5},
};

enum { TOPICS = sizeof(topics) / sizeof(topics[0]) };

const struct topic *topics_find(const char *name)
{
	for (unsigned i = 0; i < TOPICS; i++) {
		if (strcasecmp(topics[i].topic->name, name) == 0)
			return topics[i].topic;
	}
	return NULL;
}

void topics_help(struct buffer *out)
{
	for (unsigned i = 0; i < TOPICS; i++) {
		const bool is_first = i == 0 || topics[i].group != topics[i - 1].group;

		buffer_printf(out, "%s%s", is_first ? "\n\tSHOW " : "|", topics[i].topic->name);
	}
}

void topics_show(const struct topic *topic, const struct command_call *call)
{
	struct result result = {.out = call->out};

	if (topic->column_count > 0)
		result_begin(&result, call->out, topic->columns, topic->column_count);
	topic->fill(&result, call);
	writer_command_complete(call->out, "SHOW");
}
