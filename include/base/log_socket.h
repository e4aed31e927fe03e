/* SPDX-License-Identifier: ISC */
/*
 * A daemon of this machine that takes lines of a log as datagrams: syslog, the journal. Sending
 * never waits.
 */
#ifndef PGUSHER_BASE_LOG_SOCKET_H
#define PGUSHER_BASE_LOG_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

#define LOG_SOCKET_SYSLOG "/dev/log"
#define LOG_SOCKET_JOURNAL "/run/systemd/journal/socket"

struct log_socket {
	const char *place; /* path; not owned */
	int descriptor; /* -1: not open */
};

/* Open, if it is not; false: nobody listens there. */
bool log_socket_open(struct log_socket *log_socket);

void log_socket_close(struct log_socket *log_socket);

/* False: it was not taken. A daemon that was started anew is found. */
bool log_socket_send(struct log_socket *log_socket, const char *datagram, size_t length);

#endif
