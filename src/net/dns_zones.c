/* SPDX-License-Identifier: ISC */
#include "net/dns_zones.h"

#include <ares.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(zone) ((zone)->unhashed = true)
#include <uthash.h>

struct dns_zone {
	UT_hash_handle hh;
	TAILQ_ENTRY(dns_zone) entry;
	size_t names; /* cached names of the zone */
	uint32_t serial;
	bool known; /* the serial is known */
	bool unhashed; /* out of memory when it was added to the hash table */
	char name[];
};

/* --- rounds ------------------------------------------------------------------------------- */

/* RFC 1982: serials wrap around, so one that is less than 2^31 ahead is newer. */
static bool is_newer(uint32_t serial, uint32_t than)
{
	return (int32_t)(serial - than) > 0;
}

/* Ignore a serial that is older: it comes from a name server that lags behind another. */
static void note_serial(struct dns_zones *zones, struct dns_zone *zone, uint32_t serial)
{
	const uint32_t old = zone->serial;
	const bool known = zone->known;

	if (known && !is_newer(serial, old))
		return;
	zone->known = true;
	zone->serial = serial;
	if (!known)
		return;
	log_write(
		LEVEL_LOG, "zone '%s' serial changed: old=%u new=%u", zone->name, old, serial);
	zones->moved(zones, zone);
}

static void ask_next(struct loop_task *task);

static void on_answer(struct dns_question *question, const struct dns_answer *answer)
{
	struct dns_zones *zones =
		(struct dns_zones *)((char *)question - offsetof(struct dns_zones, question));
	struct dns_zone *zone = zones->asked;

	zones->asked = NULL;
	if (zone && answer->status == ARES_SUCCESS)
		note_serial(zones, zone, answer->serial);
	else if (zone)
		log_write(LEVEL_DEBUG, "no serial of zone '%s': result=%d", zone->name,
			answer->status);
	loop_defer(zones->loop, &zones->task, ask_next);
}

static void end_round(struct dns_zones *zones)
{
	const usec_t now = loop_now(zones->loop), next = zones->round_start + zones->period;

	zones->left = 0;
	if (zones->period > 0)
		wheel_set(&zones->loop->wheel, &zones->due, next > now ? next : now);
}

static void ask_next(struct loop_task *task)
{
	struct dns_zones *zones =
		(struct dns_zones *)((char *)task - offsetof(struct dns_zones, task));
	struct dns_zone *zone = TAILQ_FIRST(&zones->order);

	if (zones->left == 0 || !zone || zones->period == 0) {
		end_round(zones);
		return;
	}
	zones->left--;
	zones->asked = zone;
	TAILQ_REMOVE(&zones->order, zone, entry);
	TAILQ_INSERT_TAIL(&zones->order, zone, entry);
	strcpy(zones->asked_name, zone->name);
	dns_channel_ask(
		zones->channel, &zones->question, DNS_SERIAL, zones->asked_name, on_answer);
}

static bool is_in_round(const struct dns_zones *zones)
{
	return zones->question.channel || loop_task_is_queued(&zones->task);
}

static void begin_round(struct deadline *due)
{
	struct dns_zones *zones =
		(struct dns_zones *)((char *)due - offsetof(struct dns_zones, due));

	if (is_in_round(zones) || zones->period == 0)
		return;
	zones->round_start = loop_now(zones->loop);
	zones->left = zones->count;
	ask_next(&zones->task);
}

void dns_zones_set_period(struct dns_zones *zones, usec_t period)
{
	if (period == zones->period)
		return;
	zones->period = period;
	if (period == 0)
		deadline_cancel(&zones->due);
	else if (!is_in_round(zones))
		wheel_set(&zones->loop->wheel, &zones->due, loop_now(zones->loop) + period);
}

/* --- zones -------------------------------------------------------------------------------- */

static struct dns_zone *zone_new(struct dns_zones *zones, const char *name, size_t length)
{
	struct dns_zone *zone = calloc(1, sizeof(*zone) + length + 1);

	if (!zone)
		return NULL;
	memcpy(zone->name, name, length);
	HASH_ADD_KEYPTR(hh, zones->by_name, zone->name, length, zone);
	if (zone->unhashed) {
		free(zone);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&zones->order, zone, entry);
	zones->count++;
	return zone;
}

const struct dns_zone *dns_zones_find(
	const struct dns_zones *zones, const char *name, size_t length)
{
	const struct dns_zone *zone;

	HASH_FIND(hh, zones->by_name, name, length, zone);
	return zone;
}

struct dns_zone *dns_zones_join(struct dns_zones *zones, const char *name)
{
	const char *dot = strchr(name, '.');
	const size_t length = dot ? strlen(dot + 1) : 0;
	struct dns_zone *zone;

	if (length == 0 || length > DNS_ZONE_NAME_MAX)
		return NULL;
	HASH_FIND(hh, zones->by_name, dot + 1, length, zone);
	if (!zone)
		zone = zone_new(zones, dot + 1, length);
	if (zone)
		zone->names++;
	return zone;
}

void dns_zones_leave(struct dns_zones *zones, struct dns_zone *zone)
{
	if (!zone || --zone->names > 0)
		return;
	if (zones->asked == zone)
		zones->asked = NULL;
	HASH_DEL(zones->by_name, zone);
	TAILQ_REMOVE(&zones->order, zone, entry);
	zones->count--;
	free(zone);
}

void dns_zones_init(struct dns_zones *zones, struct loop *loop, struct dns_channel *channel,
	dns_zone_function *moved)
{
	*zones = (struct dns_zones){.loop = loop, .channel = channel, .moved = moved};
	TAILQ_INIT(&zones->order);
	zones->due.expire = begin_round;
}

void dns_zones_end(struct dns_zones *zones)
{
	struct dns_zone *zone;

	wheel_remove(&zones->loop->wheel, &zones->due);
	loop_forget(zones->loop, &zones->task);
	while ((zone = TAILQ_FIRST(&zones->order)) != NULL) {
		zone->names = 1;
		dns_zones_leave(zones, zone);
	}
}

/* --- SHOW --------------------------------------------------------------------------------- */

struct dns_zone_row dns_zone_row_of(const struct dns_zone *zone)
{
	return (struct dns_zone_row){zone->name, zone->serial, zone->names};
}

const struct dns_zone *dns_zones_next(
	const struct dns_zones *zones, const struct dns_zone *after)
{
	return after ? TAILQ_NEXT(after, entry) : TAILQ_FIRST(&zones->order);
}
