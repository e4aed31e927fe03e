/* SPDX-License-Identifier: ISC */
/*
 * Fills the tables of functions through which lower modules of the session floor call higher
 * ones: after a link has closed, after a run of the relay, when a server is free, and at the
 * steps of a login at a server.
 */
#ifndef PGUSHER_SESSION_RULES_LIFE_H
#define PGUSHER_SESSION_RULES_LIFE_H

#include "model/registry.h"

/* Set the tables in the registry. To be called once, before its loop runs. */
void life_attach(struct registry *registry);

#endif
