/* SPDX-License-Identifier: ISC */
/*
 * What another process has told of all but its connections: counters, pauses, secrets, welcomes.
 * The half of session/takeover/adoption that has no descriptors.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_ADOPTION_FACTS_H
#define PGUSHER_SESSION_TAKEOVER_ADOPTION_FACTS_H

#include "session/takeover/link_record.h"

/* One record of this kind; one that is not known is passed over. False: it is broken. */
bool adoption_facts_take(struct registry *registry, uint8_t kind, struct reader *reader);

/* See adoption_secret(). */
void adoption_facts_secret(struct registry *registry, const char *database, const char *user,
	const char *secret, const uint8_t client_key[SCRAM_KEY_SIZE]);

/* The pool of these names, made if need be; NULL: there can be none, or no memory. */
struct pool *adoption_facts_pool(
	struct registry *registry, const char *database_name, const char *user_name);

/* The moment that long ago; 0: there was none. */
usec_t adoption_facts_moment(const struct registry *registry, uint64_t age);

#endif
