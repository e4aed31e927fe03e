/* SPDX-License-Identifier: ISC */
/*
 * The parameters of a client's startup message: which are tracked, followed, ignored, and which it
 * may not ask for.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_CLIENT_PARAMETERS_H
#define PGUSHER_SESSION_PARAMETERS_CLIENT_PARAMETERS_H

#include "model/registry.h"
#include "wire/startup.h"

/*
 * They become the client's set; `message` is what `wanted` was read from, whole. False: the client
 * was closed, for a parameter that is not supported or want of memory.
 */
bool client_parameters_take(struct client_link *client, const struct startup_login *wanted,
	const uint8_t *message, size_t total);

#endif
