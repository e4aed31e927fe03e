/* SPDX-License-Identifier: ISC */
/*
 * The zones of the names that are in use, and the serial numbers of their SOA records.
 *
 * Every period they are asked for, one after the other. A number that has moved forward means
 * that somebody has changed the zone, so its names are worth another look before their time. A
 * name's zone is the text behind its first dot. Embedded in net/resolver, which knows the names.
 */
#ifndef PGUSHER_NET_DNS_ZONES_H
#define PGUSHER_NET_DNS_ZONES_H

#include "net/dns_channel.h"

/* A longer name is no zone. */
enum { DNS_ZONE_NAME_MAX = 255 };

struct dns_zone;
struct dns_zones;

/* The zone's number has moved forward. Questions may be asked from here. */
typedef void dns_zone_function(struct dns_zones *zones, struct dns_zone *zone);

TAILQ_HEAD(dns_zone_list, dns_zone);

struct dns_zones {
	struct loop *loop;
	struct dns_channel *channel;
	dns_zone_function *moved;
	struct dns_zone *by_name; /* hash table */
	struct dns_zone_list order; /* who was asked longest ago stands first */
	size_t count;
	usec_t period; /* 0: nothing is asked */
	struct deadline due; /* of the next round */
	usec_t round_start;
	size_t left; /* zones that this round has still to ask */
	struct dns_question question; /* about one zone at a time */
	struct dns_zone *asked; /* that zone; NULL: it has gone since, or nothing is asked */
	char asked_name[DNS_ZONE_NAME_MAX + 1]; /* its name, which may outlive it */
	struct loop_task task; /* asks the next */
};

/* No zones yet, and no period. The channel must outlive what is asked. */
void dns_zones_init(struct dns_zones *zones, struct loop *loop, struct dns_channel *channel,
	dns_zone_function *moved);

/* Free all; the channel must be gone, or nothing be asked. */
void dns_zones_end(struct dns_zones *zones);

/* How often the numbers are asked for; 0: never. A period that stays the same goes on. */
void dns_zones_set_period(struct dns_zones *zones, usec_t period);

/* The zone of a name, which counts it from now on. NULL: it has none, or there is no memory. */
struct dns_zone *dns_zones_join(struct dns_zones *zones, const char *name);

/* A name of this zone is no longer in use. NULL is fine. */
void dns_zones_leave(struct dns_zones *zones, struct dns_zone *zone);

/* As SHOW DNS_ZONES tells it. */
struct dns_zone_row {
	const char *name;
	uint32_t serial; /* 0 while it is not known */
	size_t names;
};

struct dns_zone_row dns_zone_row_of(const struct dns_zone *zone);

/* Walk the zones: NULL starts, NULL ends. */
const struct dns_zone *dns_zones_next(
	const struct dns_zones *zones, const struct dns_zone *after);

#endif
