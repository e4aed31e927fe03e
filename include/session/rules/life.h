/* SPDX-License-Identifier: ISC */
/*
 * The tables of functions that lower modules of the session floor call without knowing the higher
 * ones: what a closing link, a run of the relay, a freed server and a login at a server set off.
 */
#ifndef PGUSHER_SESSION_RULES_LIFE_H
#define PGUSHER_SESSION_RULES_LIFE_H

#include "model/registry.h"

/* Hand the tables to the registry, once, before its loop runs. */
void life_attach(struct registry *registry);

#endif
