/* SPDX-License-Identifier: ISC */
/*
 * Options of TCP sockets: keepalive, timeouts, buffer sizes. TCP_NODELAY is always set. Used
 * for listening sockets (accepted connections inherit the options, tcp(7)) and for connections
 * to servers.
 *
 * Both get them before the handshake of TCP: the size of the receive buffer then decides the
 * first window and the window scale of the connection (RFC 7323). If a buffer gets smaller than
 * the window that was announced, the peer fills all of it with one segment, the window closes,
 * and each time only a probe of the peer's, 200 ms later, opens it again.
 */
#ifndef PGUSHER_NET_TCP_OPTIONS_H
#define PGUSHER_NET_TCP_OPTIONS_H

#include <stdbool.h>

struct tcp_options {
	bool keepalive;
	/*
	 * Probes, and seconds before the first and between two; 0: the system's. Unused if
	 * !keepalive.
	 */
	int keepcnt, keepidle, keepintvl;
	int user_timeout; /* milliseconds; 0: off */
	int buffer; /* bytes of the send and of the receive buffer, each; 0: the system's */
};

/*
 * Set these options on a new TCP socket. Returns false, with errno of the first failure, when
 * the kernel refuses one; the others are set nevertheless.
 */
bool tcp_options_apply(int fd, const struct tcp_options *options);

/*
 * Set these options on a TCP socket that had others: an option that is 0 now gets the system's
 * default again, read from a new socket. Returns false with errno when that fails; some options
 * may have been changed then.
 */
bool tcp_options_change(int fd, const struct tcp_options *options);

#endif
