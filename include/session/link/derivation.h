/* SPDX-License-Identifier: ISC */
/*
 * SCRAM keys from a clear password: thousands of hashes, so it is done on a helper thread and
 * the login that needs it is taken up again on the loop.
 */
#ifndef PGUSHER_SESSION_LINK_DERIVATION_H
#define PGUSHER_SESSION_LINK_DERIVATION_H

#include "crypt/scram.h"
#include "model/registry.h"

struct derivation;

/* Whom a derivation is for. */
struct derivation_owner {
	uint64_t link; /* its id; it may be gone by the time the keys are there */
	struct user *user; /* kept until then; NULL: none is needed */
	struct user_keys *into; /* kept until then, for the verifier; NULL: likewise */
	struct derivation **handle; /* holds it while it is under way; NULL: never abandoned */
	bool urgent; /* servers, which all others need, do not wait behind clients */
};

/* The keys are there (or NULL: no memory). They are wiped after the call. */
typedef void derivation_function(struct registry *registry,
	const struct derivation_owner *owner, const struct scram_secret *parameters,
	const struct scram_keys *keys);

/*
 * Derive the keys for this password with the salt and iterations of `parameters`. done is called
 * in a later turn, unless the process ends. False: the queue is full, or there is no memory.
 */
bool derivation_start(struct registry *registry, const struct derivation_owner *owner,
	const char *password, const struct scram_secret *parameters, derivation_function *done);

/*
 * Nobody waits for it any more, and done is not called: what has not begun never does, so that
 * those who leave keep nobody waiting. NULL is nothing.
 */
void derivation_abandon(struct registry *registry, struct derivation *derivation);

/*
 * When a derivation for a client that was begun now would have ended, with much room: the refusals
 * of all clients wait for that time, whether one is begun for them or not.
 */
usec_t derivation_end_expected(const struct registry *registry);

#endif
