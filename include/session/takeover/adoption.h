/* SPDX-License-Identifier: ISC */
/*
 * Goes on with what another process had: rebuilds databases, pools and connections from what
 * session/takeover/inventory, or a PgBouncer, has told of them.
 *
 * Nothing is read or written before adoption_wake(): until the other process has let go, all of
 * it may still be its own. What cannot be rebuilt is left out, and its descriptor closed.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_ADOPTION_H
#define PGUSHER_SESSION_TAKEOVER_ADOPTION_H

#include "session/takeover/link_record.h"

struct adoption;

/* NULL: no memory. */
struct adoption *adoption_new(struct registry *registry);

/*
 * One record of an inventory, without its kind; the descriptor is taken over. What it lends must
 * stay until adoption_wake(). False: the record is broken, or of a kind that is not ours to know.
 */
bool adoption_record(
	struct adoption *adoption, uint8_t kind, const void *fields, size_t length, int fd);

/* One connection, told in another way. The descriptor is taken over; lent as above. */
void adoption_link(struct adoption *adoption, const struct link_record *record, int fd);

/* What a user's client has proved, told beside a connection; either may be NULL. */
void adoption_secret(struct adoption *adoption, const char *database, const char *user,
	const char *secret, const uint8_t client_key[SCRAM_KEY_SIZE]);

/* All has been told: pairs are joined, and what has lost its other half is left out. */
void adoption_join(struct adoption *adoption);

/* All of it is ours now: go on. */
void adoption_wake(struct adoption *adoption);

/* The links stay. NULL is allowed. */
void adoption_free(struct adoption *adoption);

#endif
