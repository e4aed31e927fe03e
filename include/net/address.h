/* SPDX-License-Identifier: ISC */
/*
 * The address of one end of a connection in few bytes, and its text in logs and SHOW.
 */
#ifndef PGUSHER_NET_ADDRESS_H
#define PGUSHER_NET_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Size of a buffer for the longest text of an address with a port, with its NUL. */
enum { ADDRESS_TEXT_SIZE = 128 };

struct address {
	uint8_t family; /* AF_INET, AF_INET6, AF_UNIX or AF_UNSPEC while unknown */
	uint16_t port; /* in host order; AF_UNIX: the port in the name of the socket's file */
	union {
		uint8_t bytes[16];
		int32_t pid; /* AF_UNIX: process id of the peer, 0 if unknown */
	};
};

/*
 * Returns the address that the kernel wrote into `from`. Another family, or a length that is
 * too short for its family, gives AF_UNSPEC. A Unix socket gets port 0 and pid 0.
 */
struct address address_of(const struct sockaddr *from, socklen_t length);

/*
 * Write an IPv4 or IPv6 address with this port into `out`. Returns its length; 0 for another family.
 */
socklen_t address_socket(
	const struct address *address, uint16_t port, struct sockaddr_storage *out);

/* Returns the address that the socket is bound to (getsockname); AF_UNSPEC on failure. */
struct address address_local(int fd);

/*
 * Returns the host without its port: `127.0.0.1`, `::1`, `unix`, or `(bad-af)` while unknown.
 * The text is in `out` or constant.
 */
const char *address_host(const struct address *address, char out[ADDRESS_TEXT_SIZE]);

/*
 * Writes host and port as log lines have them: `127.0.0.1:5`, `[::1]:5`, `unix(PID):5`,
 * `unix:5` (process unknown), `(bad-af):0`. Returns `out`.
 */
const char *address_text(const struct address *address, char out[ADDRESS_TEXT_SIZE]);

/* Returns whether only this machine reaches it: a Unix socket, 127.0.0.0/8, ::1. */
bool address_is_local(const struct address *address);

/* Returns whether host and port are the same. The pid of a Unix socket does not count. */
bool address_equal(const struct address *a, const struct address *b);

/*
 * Returns the IPv4 address in an IPv6 address (`::ffff:10.0.0.1`, RFC 4291 section 2.5.5.2), with
 * its port; any other address unchanged.
 */
struct address address_unmapped(const struct address *address);

/*
 * Returns what stands for the one at the other end of a connection where clients are counted by
 * their addresses: without port and pid. An IPv6 address is cut to its network of 64 bits, of
 * which one host may use all addresses (RFC 4291 section 2.5.4), unless it stands for an IPv4
 * address. All bytes are set, so that results can be compared and hashed as memory.
 */
struct address address_source(const struct address *address);

/*
 * Write the address of a Unix socket with this path into `out`; a leading @ means the abstract
 * name space (unix(7)). Returns the length to pass to bind() or connect(), 0 when the path is
 * too long.
 */
struct sockaddr_un;
socklen_t address_unix(struct sockaddr_un *out, const char *path);

#endif
