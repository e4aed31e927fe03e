/* SPDX-License-Identifier: ISC */
/*
 * SCRAM keys from a clear password: thousands of hashes, so it is done on a helper thread and
 * the login that needs it is taken up again on the loop.
 */
#ifndef PGUSHER_SESSION_AUTH_DERIVATION_H
#define PGUSHER_SESSION_AUTH_DERIVATION_H

#include "crypt/scram.h"
#include "model/registry.h"

struct derivation;

/*
 * The keys are there (or NULL: no memory, or the process ends). `link` may be gone by now: find
 * it by its id. The keys are wiped after the call.
 */
typedef void derivation_function(struct registry *registry, uint64_t link, struct user *user,
	const struct scram_secret *parameters, const struct scram_keys *keys);

/*
 * Derive the keys for this password with the salt and iterations of `parameters`, for the link
 * of that id and a user (who lives as long as the registry). done is called in a later turn.
 * False: the queue is full, or there is no memory.
 */
bool derivation_start(struct registry *registry, uint64_t link, struct user *user,
	const char *password, const struct scram_secret *parameters, derivation_function *done);

#endif
