/* SPDX-License-Identifier: ISC */
/*
 * Derives SCRAM keys from a clear-text password. This takes thousands of hashes, so it runs on
 * a helper thread, and the login that needs the keys continues on the event loop.
 */
#ifndef PGUSHER_SESSION_LINK_DERIVATION_H
#define PGUSHER_SESSION_LINK_DERIVATION_H

#include "crypt/scram.h"
#include "model/registry.h"

struct derivation;

/* What a derivation is for. It is copied. */
struct derivation_owner {
	uint64_t link; /* id of the link that logs in; it may be closed before the end */
	struct user *user; /* kept until the end; NULL: none is needed */
	struct user_keys *into; /* a verifier's keys, kept until the end; NULL: none */
	struct derivation **handle; /* set while the derivation runs; NULL: never abandoned */
	bool urgent; /* for a server: runs before the derivations for clients */
};

/*
 * Called with the keys, which are wiped after the call; NULL: the derivation failed, out of
 * memory.
 */
typedef void derivation_function(struct registry *registry,
	const struct derivation_owner *owner, const struct scram_secret *parameters,
	const struct scram_keys *keys);

/*
 * Derive the keys for this password with the salt and iterations of `parameters`; both are
 * copied. `done` is called in a later turn, unless the process ends or the derivation is
 * abandoned. Returns false when the queue is full or out of memory.
 */
bool derivation_start(struct registry *registry, const struct derivation_owner *owner,
	const char *password, const struct scram_secret *parameters, derivation_function *done);

/*
 * The login has ended: `done` will not be called. A derivation that has not started yet is
 * removed from the queue, so that it does not delay others. NULL is allowed.
 */
void derivation_abandon(struct registry *registry, struct derivation *derivation);

/*
 * Returns the time when a derivation for a client that started now would have ended, with a
 * wide margin. Refusals of all clients are sent at that time, so that their timing does not
 * show whether a derivation was needed.
 */
usec_t derivation_end_expected(const struct registry *registry);

#endif
