/* SPDX-License-Identifier: ISC */
/*
 * One entry of [peers]: where another process of the same service is, for cancel requests. Made
 * whole, then never changed; the configuration that it stands in owns it.
 */
#ifndef PGUSHER_CONFIG_PEER_CONFIG_H
#define PGUSHER_CONFIG_PEER_CONFIG_H

#include <stdint.h>

#include "config/ini.h"

struct entry_grammar;

enum { PEER_DEFAULT_PORT = 6432 };

struct peer_config {
	const char *name; /* the number in decimal */
	const char *host; /* as in a database; never NULL */
	int pool_size; /* -1: default_pool_size */
	uint16_t id; /* from 1 */
	uint16_t port;
};

/* Read an entry; NULL when it has mistakes (added to the problems), or without memory. */
struct peer_config *peer_config_parse(const struct ini_place *place, const char *id,
	const char *text, struct problems *problems);

/* NULL is fine. */
void peer_config_free(struct peer_config *config);

/* The keys of such an entry. */
const struct entry_grammar *peer_config_grammar(void);

#endif
