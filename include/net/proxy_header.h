/* SPDX-License-Identifier: ISC */
/*
 * The header of the PROXY protocol, versions 1 and 2: a proxy sends it before all other bytes of
 * a connection, with the address of its client. Source: proxy-protocol.txt of HAProxy.
 *
 * A pure function of bytes. Whether the sender may be believed is for the caller to decide. The
 * information behind the addresses (TLV) is skipped; only a checksum is verified.
 */
#ifndef PGUSHER_NET_PROXY_HEADER_H
#define PGUSHER_NET_PROXY_HEADER_H

#include "net/address.h"

enum {
	PROXY_HEADER_LINE_MAX = 107, /* version 1, with its CR LF. Section 2.1 */
	/*
	 * Version 2, all in all. Its length field allows 65551; addresses take at most 232 and
	 * proxies add some hundred.
	 */
	PROXY_HEADER_MAX = 4096,
};

enum proxy_header_result {
	PROXY_HEADER_NONE, /* the bytes are not the beginning of a header */
	PROXY_HEADER_UNCLEAR, /* they are too few to tell */
	PROXY_HEADER_INCOMPLETE, /* they are the beginning of a header; never PROXY_HEADER_MAX */
	PROXY_HEADER_WHOLE,
	PROXY_HEADER_MALFORMED,
};

struct proxy_header {
	size_t size; /* WHOLE: bytes of the header; others may follow */
	/*
	 * WHOLE: the proxy relays a connection; false: it has connected for itself (LOCAL), such
	 * as for a health check.
	 */
	bool relayed;
	/*
	 * WHOLE and relayed: where the relayed connection comes from. AF_UNSPEC if the header
	 * does not tell, or if it does not come over TCP: the address of the proxy's own
	 * connection is used then. An IPv4 address in an IPv6 address is given as IPv4.
	 */
	struct address client;
	const char *fault; /* MALFORMED: what is wrong, a constant text */
};

/* Read the header at the front of `data`. */
enum proxy_header_result proxy_header_read(
	const uint8_t *data, size_t length, struct proxy_header *out);

#endif
