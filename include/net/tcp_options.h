/* SPDX-License-Identifier: ISC */
/*
 * What the settings say about TCP sockets: keepalive, time-outs, buffer sizes; delays are always
 * off. One place for both sides: listening sockets (what they accept inherits it all) and
 * connections to servers.
 */
#ifndef PGUSHER_NET_TCP_OPTIONS_H
#define PGUSHER_NET_TCP_OPTIONS_H

#include <stdbool.h>

struct tcp_options {
	bool keepalive;
	int keepcnt, keepidle,
		keepintvl; /* 0: the system's own; without effect if !keepalive */
	int user_timeout; /* milliseconds; 0: off */
	int buffer; /* bytes for sending and for receiving; 0: the system's own */
};

/*
 * Give a new TCP socket these options. False with errno when the system refuses one of them; the
 * others are set all the same.
 */
bool tcp_options_apply(int fd, const struct tcp_options *options);

/*
 * The same for a socket that had other options before: what is 0 now goes back to the system's
 * default.
 */
bool tcp_options_change(int fd, const struct tcp_options *options);

#endif
