/* SPDX-License-Identifier: ISC */
/*
 * A range of addresses, as in access rules: an address and a mask.
 */
#ifndef PGUSHER_NET_NETWORK_H
#define PGUSHER_NET_NETWORK_H

#include "net/address.h"

struct network {
	uint8_t family; /* AF_INET, AF_INET6; AF_UNIX, for all Unix sockets, in lists only */
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

/* Returns whether every address of its family is in the range. */
bool network_is_everything(const struct network *network);

/* Writes `10.0.0.1 / 255.0.0.0`. Returns `out`. */
const char *network_text(const struct network *network, char out[ADDRESS_TEXT_SIZE]);

/* A list of ranges. Zeroed is empty; it owns its memory. */
struct network_list {
	struct network *networks;
	unsigned count;
};

/*
 * Get the next range of a list in text, as network_parse_any() reads it, or `unix`. Items are
 * separated by commas or blanks. Returns false at the end. `*cursor` starts as the text and moves
 * past the item. `*good` is false, and `out` is not set, if the item is none of these or has bits
 * set outside of its mask.
 */
bool network_list_next(const char **cursor, struct network *out, bool *good);

/*
 * Replace the list by that in text; items that are not good are left out. Returns false when out
 * of memory: the list is empty then.
 */
bool network_list_read(struct network_list *list, const char *text);

/* Returns whether the address is in a range of the list. */
bool network_list_has(const struct network_list *list, const struct address *address);

/* Free the memory and leave the list empty. */
void network_list_free(struct network_list *list);

#endif
