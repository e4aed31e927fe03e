/* SPDX-License-Identifier: ISC */
/*
 * The DNS zones of the cached names, and the serial numbers of their SOA records.
 *
 * Once a period the serials are queried, one zone after the other. A serial that has increased
 * means that the zone has changed, so the names of the zone are looked up before they expire.
 * The zone of a name is the text after its first dot. Part of net/resolver, which has the
 * names.
 */
#ifndef PGUSHER_NET_DNS_ZONES_H
#define PGUSHER_NET_DNS_ZONES_H

#include "net/dns_channel.h"

/* Names of zones that are longer are not watched. */
enum { DNS_ZONE_NAME_MAX = 255 };

struct dns_zone;
struct dns_zones;

/* The serial of the zone has increased. The callback may ask questions of the channel. */
typedef void dns_zone_function(struct dns_zones *zones, struct dns_zone *zone);

TAILQ_HEAD(dns_zone_list, dns_zone);

struct dns_zones {
	struct loop *loop;
	struct dns_channel *channel;
	dns_zone_function *moved;
	struct dns_zone *by_name; /* hash table */
	struct dns_zone_list order; /* the zone with the oldest query stands first */
	size_t count;
	usec_t period; /* 0: no queries */
	struct deadline due; /* of the next round */
	usec_t round_start;
	size_t left; /* zones that are still to be queried in this round */
	struct dns_question question; /* for one zone at a time */
	struct dns_zone
		*asked; /* zone of the question; NULL: freed meanwhile, or none in flight */
	char asked_name[DNS_ZONE_NAME_MAX + 1]; /* its name, valid even if the zone is freed */
	struct loop_task task; /* queries the next zone */
};

/* Start without zones and with period 0. The channel must outlive a question in flight. */
void dns_zones_init(struct dns_zones *zones, struct loop *loop, struct dns_channel *channel,
	dns_zone_function *moved);

/* Free all zones. No question may be in flight: free the channel first. */
void dns_zones_end(struct dns_zones *zones);

/*
 * Set the time from the start of one round to that of the next; 0: no rounds. If the value is
 * the same as before, the current period continues.
 */
void dns_zones_set_period(struct dns_zones *zones, usec_t period);

/*
 * Find or add the zone of a name, and count the name in it. Returns NULL when the name has no
 * zone or memory is short. Undone by dns_zones_leave().
 */
struct dns_zone *dns_zones_join(struct dns_zones *zones, const char *name);

/* One name less in this zone; frees the zone after its last name. NULL is allowed. */
void dns_zones_leave(struct dns_zones *zones, struct dns_zone *zone);

/* Returns the zone of this name; NULL if there is none. */
const struct dns_zone *dns_zones_find(
	const struct dns_zones *zones, const char *name, size_t length);

/* A row of SHOW DNS_ZONES. */
struct dns_zone_row {
	const char *name; /* owned by the zone */
	uint32_t serial; /* 0 while unknown */
	size_t names; /* cached names of the zone */
};

struct dns_zone_row dns_zone_row_of(const struct dns_zone *zone);

/* Walk the zones: pass NULL for the first one; returns NULL after the last one. */
const struct dns_zone *dns_zones_next(
	const struct dns_zones *zones, const struct dns_zone *after);

#endif
