/* SPDX-License-Identifier: ISC */
/*
 * A range of addresses, as in access rules: an address and a mask.
 */
#ifndef PGUSHER_NET_NETWORK_H
#define PGUSHER_NET_NETWORK_H

#include "net/address.h"

struct network {
	uint8_t family; /* AF_INET or AF_INET6 */
	uint8_t bytes[16], mask[16]; /* AF_INET uses the first 4 bytes of each */
};

/*
 * Parse `10.0.0.0/8` or `fe80::/10`. Returns false for other texts, also host names and zones.
 */
bool network_parse(const char *text, struct network *out);

/* As network_parse(), or an address alone, `10.0.0.1`: a range of this one address. */
bool network_parse_any(const char *text, struct network *out);

/*
 * Parse an address and a mask: `10.0.0.0` and `255.0.0.0`. Returns false unless both are
 * addresses of the same family.
 */
bool network_parse_masked(const char *address, const char *mask, struct network *out);

/* Returns whether the address is in the range; false for one of another family. */
bool network_has(const struct network *network, const struct address *address);

/* Returns whether no address matches, since the network has bits set outside of its mask. */
bool network_is_empty(const struct network *network);

/* Writes `10.0.0.1 / 255.0.0.0`. Returns `out`. */
const char *network_text(const struct network *network, char out[ADDRESS_TEXT_SIZE]);

#endif
