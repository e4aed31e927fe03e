/* SPDX-License-Identifier: ISC */
/*
 * The order of rows in SHOW CLIENTS, SERVERS and SOCKETS: pools in the registry's order, within
 * each pool its lists of links, and last the links without a pool.
 *
 * For each topic there are two functions, of struct topic_walk: one lists all links in order,
 * the other returns the place of a single link in the same order; 0: the link has no row.
 */
#ifndef PGUSHER_ADMIN_SHOW_LINK_ORDER_H
#define PGUSHER_ADMIN_SHOW_LINK_ORDER_H

#include "admin/show/show_stream.h"

void link_order_list_clients(struct show_stream *show);
uint32_t link_order_place_client(const struct link *link);

void link_order_list_servers(struct show_stream *show);
uint32_t link_order_place_server(const struct link *link);

/* Of SHOW SOCKETS and ACTIVE_SOCKETS: without cancel requests. */
void link_order_list_sockets(struct show_stream *show);
uint32_t link_order_place_socket(const struct link *link);

#endif
