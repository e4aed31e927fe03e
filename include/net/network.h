/* SPDX-License-Identifier: ISC */
/*
 * A range of addresses, as access rules name it: an address and the bits of it that count.
 */
#ifndef PGUSHER_NET_NETWORK_H
#define PGUSHER_NET_NETWORK_H

#include "net/address.h"

struct network {
	uint8_t family; /* AF_INET or AF_INET6 */
	uint8_t bytes[16], mask[16]; /* the first 4 of them, or all */
};

/* `10.0.0.0/8`, `fe80::/10`. False: anything else, host names and zones too. */
bool network_parse(const char *text, struct network *out);

/* An address and its mask apart: `10.0.0.0` and `255.0.0.0`. False: not two of one family. */
bool network_parse_masked(const char *address, const char *mask, struct network *out);

/* Is the address in the range? Never one of another family. */
bool network_has(const struct network *network, const struct address *address);

/* Is there no address in it, since the written one has bits that the mask takes away? */
bool network_is_empty(const struct network *network);

/* `10.0.0.1 / 255.0.0.0`; out holds ADDRESS_TEXT_SIZE bytes and is returned. */
const char *network_text(const struct network *network, char out[ADDRESS_TEXT_SIZE]);

#endif
