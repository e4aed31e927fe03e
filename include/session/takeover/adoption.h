/* SPDX-License-Identifier: ISC */
/*
 * Rebuilds the databases, pools and connections of another process from the records that its
 * takeover/inventory, or a PgBouncer, has sent.
 *
 * Before adoption_activate() no connection is read or written: until the other process has
 * given up its connections it may resume them all. What cannot be rebuilt is left out, and its
 * descriptor is closed.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_ADOPTION_H
#define PGUSHER_SESSION_TAKEOVER_ADOPTION_H

#include "session/takeover/link_record.h"

struct adoption;

/*
 * Return an empty adoption into the process of this registry, the first one, for the caller to free,
 * or NULL when out of memory. No other thread of the process runs until adoption_activate() has
 * returned.
 */
struct adoption *adoption_new(struct registry *registry);

/*
 * Adopt one record of an inventory. `kind` is its enum inventory_kind, `fields` are its bytes
 * behind the kind; they must stay valid until adoption_activate(). The descriptor is taken over
 * (-1: none). Returns false when the record is malformed or memory is short; a kind that is not
 * known is skipped.
 */
bool adoption_record(
	struct adoption *adoption, uint8_t kind, const void *fields, size_t length, int fd);

/*
 * Adopt one connection by a record from another source than an inventory. The descriptor
 * is taken over; the bytes that the record points to must stay valid until adoption_activate().
 */
void adoption_link(struct adoption *adoption, const struct link_record *record, int fd);

/*
 * Adopt the secret and the SCRAM client key that another process has for a user, beside one of
 * the user's connections. Either may be NULL. Both are copied.
 */
void adoption_secret(struct adoption *adoption, const char *database, const char *user,
	const char *secret, const uint8_t client_key[SCRAM_KEY_SIZE]);

/* All records have been adopted: join the pairs, and close links with a missing peer. */
void adoption_join(struct adoption *adoption);

/* The other process has given up the connections: begin to read and write them. */
void adoption_activate(struct adoption *adoption);

/* Free the adoption, but not the links. NULL is allowed. */
void adoption_free(struct adoption *adoption);

#endif
