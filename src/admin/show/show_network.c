/* SPDX-License-Identifier: ISC */
/* SHOW DNS_HOSTS, DNS_ZONES, PEERS and PEER_POOLS. */
#include "admin/show/topic.h"
#include "model/peer.h"
#include "model/shared/all_names.h"

/* --- DNS_HOSTS ---------------------------------------------------------------------------- */

static const struct column host_columns[] = {
	{"hostname", COLUMN_TEXT},
	{"ttl", COLUMN_INT8},
	{"addrs", COLUMN_TEXT},
};

/* `10.0.0.1:0,10.0.0.2:0`: a host name that was looked up has no port. */
static void add_addresses(struct result *result, const struct resolver_name *name)
{
	const struct sockaddr *address;
	struct buffer list = {0};
	socklen_t length;

	for (size_t i = 0; (address = resolver_row_address(name, i, &length)) != NULL; i++) {
		const struct address one = address_of(address, length);
		char text[ADDRESS_TEXT_SIZE];

		buffer_printf(&list, "%s%s:0", i > 0 ? "," : "", address_host(&one, text));
	}
	buffer_append(&list, "", 1);
	if (list.failed)
		result->out->failed = true;
	result_text(result, list.failed ? NULL : (const char *)list.data);
	buffer_free(&list);
}

static void fill_hosts(struct result *result, const struct show_request *request)
{
	struct name_walk walk = {.process = request->registry->process};

	while (name_walk_next(&walk)) {
		const struct resolver_name *answer;
		const struct resolver_row row = all_names_row(&walk, &answer);

		result_begin_row(result);
		result_text(result, row.name);
		result_number(result, row.left / USEC_PER_SEC);
		add_addresses(result, answer);
		result_end_row(result);
	}
}

const struct topic show_dns_hosts = TOPIC("DNS_HOSTS", host_columns, fill_hosts);

/* --- DNS_ZONES ---------------------------------------------------------------------------- */

static const struct column zone_columns[] = {
	{"zonename", COLUMN_TEXT},
	{"serial", COLUMN_INT8},
	{"count", COLUMN_INT4},
};

static void fill_zones(struct result *result, const struct show_request *request)
{
	struct name_walk walk = {.process = request->registry->process};

	while (zone_walk_next(&walk)) {
		const struct dns_zone_row row = all_zones_row(&walk);

		result_begin_row(result);
		result_text(result, row.name);
		result_number(result, row.serial);
		result_number(result, (long long)row.names);
		result_end_row(result);
	}
}

const struct topic show_dns_zones = TOPIC("DNS_ZONES", zone_columns, fill_zones);

/* --- PEER_POOLS --------------------------------------------------------------------------- */

static const struct column peer_pool_columns[] = {
	{"peer_id", COLUMN_INT4},
	{"cl_active_cancel_req", COLUMN_INT4},
	{"cl_waiting_cancel_req", COLUMN_INT4},
	{"sv_active_cancel", COLUMN_INT4},
	{"sv_login", COLUMN_INT4},
};

static void fill_peer_pools(struct result *result, const struct show_request *request)
{
	const struct peer *peer;

	TAILQ_FOREACH (peer, &request->registry->process->peers, entry) {
		const struct pool *pool = peer->pool;

		result_begin_row(result);
		result_number(result, peer->id);
		result_number(result, pool->client_count[CLIENT_CANCEL_SENT]);
		result_number(result, pool->client_count[CLIENT_CANCEL_WAITING]);
		result_number(result, pool->server_count[SERVERS_ACTIVE_CANCEL]);
		result_number(result, pool->server_count[SERVERS_LOGIN]);
		result_end_row(result);
	}
}

const struct topic show_peer_pools = TOPIC("PEER_POOLS", peer_pool_columns, fill_peer_pools);

/* --- PEERS -------------------------------------------------------------------------------- */

static const struct column peer_columns[] = {
	{"peer_id", COLUMN_INT4},
	{"host", COLUMN_TEXT},
	{"port", COLUMN_INT4},
	{"pool_size", COLUMN_INT4},
};

static void add_peer(
	struct result *result, const struct peer_config *peer, const struct settings *settings)
{
	result_begin_row(result);
	result_number(result, peer->id);
	result_text(result, peer->host);
	result_number(result, peer->port);
	result_number(result, peer_pool_size(peer, settings));
	result_end_row(result);
}

static void fill_peers(struct result *result, const struct show_request *request)
{
	const struct peer_config *peer = peer_config_next(request->registry, 0);

	for (; peer; peer = peer_config_next(request->registry, peer->id))
		add_peer(result, peer, request->registry->process->settings);
}

const struct topic show_peers = TOPIC("PEERS", peer_columns, fill_peers);
