/* SPDX-License-Identifier: ISC */
/*
 * The parameters of a client's startup message: which are tracked, followed or ignored, and
 * which are refused.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_CLIENT_PARAMETERS_H
#define PGUSHER_SESSION_PARAMETERS_CLIENT_PARAMETERS_H

#include "model/registry.h"
#include "wire/startup.h"

/*
 * Make the client's set of parameters from its startup message. `message`, of `total` bytes, is
 * the whole message that `wanted` was read from. Returns false when a parameter is not
 * supported or when out of memory; the client was closed then.
 */
bool client_parameters_take(struct client_link *client, const struct startup_login *wanted,
	const uint8_t *message, size_t total);

#endif
