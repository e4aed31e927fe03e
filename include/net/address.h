/* SPDX-License-Identifier: ISC */
/*
 * The address of a peer in few bytes, and how it is written in logs and SHOW.
 */
#ifndef PGUSHER_NET_ADDRESS_H
#define PGUSHER_NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Longest text of an address with a port. */
enum { ADDRESS_TEXT_SIZE = 128 };

struct address {
	uint8_t family; /* AF_INET, AF_INET6, AF_UNIX or AF_UNSPEC while unknown */
	uint16_t port; /* host order; for AF_UNIX the port in the socket's file name */
	union {
		uint8_t bytes[16];
		int32_t pid; /* AF_UNIX: the peer's process, 0 if unknown */
	};
};

/* From what the kernel says; an address of another family becomes AF_UNSPEC. */
struct address address_of(const struct sockaddr *from, socklen_t length);

/* The address that the socket is bound to (getsockname). */
struct address address_local(int fd);

/* The host alone: `127.0.0.1`, `::1`, `unix`, or `(bad-af)` while unknown. */
const char *address_host(const struct address *address, char out[ADDRESS_TEXT_SIZE]);

/* With the port, as log lines have it: `127.0.0.1:5`, `[::1]:5`, `unix(PID):5`, `(bad-af):0`. */
const char *address_text(const struct address *address, char out[ADDRESS_TEXT_SIZE]);

/* Same host and port? */
bool address_equal(const struct address *a, const struct address *b);

/*
 * A Unix socket's address for this path; a leading @ is the abstract name space. Returns the
 * length to be used, 0 when the path is too long.
 */
struct sockaddr_un;
socklen_t address_unix(struct sockaddr_un *out, const char *path);

#endif
