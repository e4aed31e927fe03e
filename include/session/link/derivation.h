/* SPDX-License-Identifier: ISC */
/*
 * Derives SCRAM keys from clear-text passwords, for logins of clients and at servers. This
 * takes thousands of hashes, and peers choose how many: so it runs on helper threads, in
 * slices, and the login that needs the keys continues on the event loop.
 *
 * Between two slices of a derivation others have their turn. Logins at servers and logins of
 * clients share the threads equally, and so do the users, the client addresses and the servers
 * among themselves (base/fair_queue): neither a user with an expensive secret, nor an address
 * with many wrong passwords, nor a server that demands many iterations delays the logins of
 * others by more than a few slices. What one of them may have in the queue is limited.
 *
 * A derivation ends within a thousand iterations when its login ends or the process stops.
 */
#ifndef PGUSHER_SESSION_LINK_DERIVATION_H
#define PGUSHER_SESSION_LINK_DERIVATION_H

#include "base/fair_queue.h"
#include "crypt/scram.h"
#include "model/registry.h"

struct derivation;

TAILQ_HEAD(derivation_list, derivation);

/* Those of a registry. */
struct derivations {
	struct helper *helper;
	struct fair_queue waiting;
	struct derivation_list all;
	unsigned pending, most; /* number of `all`, and its limit */
	unsigned submitted, submitted_most; /* slices that the helper has */
};

/* What a derivation is for. It is copied. */
struct derivation_owner {
	struct link *link; /* the client or server that logs in */
	/*
	 * A verifier's keys, kept until the end. The derivation goes on after the login that
	 * has started it, for as long as the secret or another login needs the keys. NULL: none.
	 */
	struct user_keys *into;
	/*
	 * Set while the derivation runs. Without `into`: the login, which has it, must abandon
	 * the derivation when it ends.
	 */
	struct derivation **handle;
};

/*
 * Called with the keys, which are wiped after the call; NULL: the derivation failed, out of
 * memory. With owner->into the link may have been closed.
 */
typedef void derivation_function(struct registry *registry,
	const struct derivation_owner *owner, const struct scram_secret *parameters,
	const struct scram_keys *keys);

/*
 * Make registry->derivations, with at most this many threads, and at most `most` derivations at
 * the same time; a user, a client address or a server may have a quarter of them. Returns false
 * when out of memory or descriptors.
 */
bool derivations_start(struct registry *registry, unsigned threads, unsigned most);

/*
 * End all derivations without a call of `done`, and free registry->derivations, if there is
 * one. Logins have ended before. Does not wait for running slices: returns the number of
 * threads that still run one and end by themselves.
 */
unsigned derivations_end(struct registry *registry);

/* Returns the number of derivations that have not ended. */
unsigned derivations_pending(const struct registry *registry);

/*
 * Derive the keys for this password with the salt and iterations of `parameters`; both are
 * copied. `done` is called in a later turn, unless the process ends or the derivation is
 * abandoned. Returns false when there are too many derivations or out of memory.
 */
bool derivation_start(struct registry *registry, const struct derivation_owner *owner,
	const char *password, const struct scram_secret *parameters, derivation_function *done);

/* The login has ended: `done` will not be called. NULL is allowed. */
void derivation_abandon(struct derivation *derivation);

/*
 * Returns the time when a derivation for a client that started now would have ended, with a
 * wide margin. Refusals of all clients are sent at that time, so that their timing does not
 * show whether a derivation was needed.
 */
usec_t derivation_end_expected(const struct registry *registry);

#endif
