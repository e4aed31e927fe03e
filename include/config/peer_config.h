/* SPDX-License-Identifier: ISC */
/*
 * One entry of [peers]: the address of another process of the same service, for cancel
 * requests. Immutable; owned by its configuration.
 */
#ifndef PGUSHER_CONFIG_PEER_CONFIG_H
#define PGUSHER_CONFIG_PEER_CONFIG_H

#include <stdint.h>

#include "config/ini.h"

struct entry_grammar;

enum { PEER_DEFAULT_PORT = 6432 };

struct peer_config {
	const char *name; /* the number in decimal */
	const char *host; /* as in [databases]; never NULL */
	int pool_size; /* -1: default_pool_size */
	uint16_t id; /* from 1 */
	uint16_t port;
};

/*
 * Parse an entry. Returns NULL if it has mistakes (added to the problems) or when out of
 * memory. The caller frees it.
 */
struct peer_config *peer_config_parse(const struct ini_place *place, const char *id,
	const char *text, struct problems *problems);

/* Free; NULL is allowed. */
void peer_config_free(struct peer_config *config);

/* The keys of an entry. */
const struct entry_grammar *peer_config_grammar(void);

#endif
