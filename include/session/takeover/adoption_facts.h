/* SPDX-License-Identifier: ISC */
/*
 * Adopts everything but connections from another process: counters, pauses, secrets, welcomes.
 * The part of takeover/adoption that has no descriptors.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_ADOPTION_FACTS_H
#define PGUSHER_SESSION_TAKEOVER_ADOPTION_FACTS_H

#include "session/takeover/link_record.h"

/*
 * Adopt one record of this enum inventory_kind, for all registries of the process, of which this is
 * the first; a kind that is not known is skipped. Returns false when the record is malformed.
 */
bool adoption_facts_take(struct registry *registry, uint8_t kind, struct reader *reader);

/* Does the work of adoption_secret(). */
void adoption_facts_secret(struct registry *registry, const char *database, const char *user,
	const char *secret, const uint8_t client_key[SCRAM_KEY_SIZE]);

/*
 * Returns the home of a database that is adopted into the process of this registry, the first one;
 * the first one also if there is no such database (or no name: NULL).
 */
struct registry *adoption_facts_home(struct registry *registry, const char *database_name);

/*
 * Return the pool of this database, which is at home in the registry, and user. It is made if there is
 * none yet. Returns NULL when there can be no such pool, or when out of memory.
 */
struct pool *adoption_facts_pool(struct registry *registry, const char *database_name,
	const char *user_name, const char *role);

/* Return the time of the loop `age` microseconds ago. 0 gives 0: there is no such time. */
usec_t adoption_facts_moment(const struct registry *registry, uint64_t age);

#endif
