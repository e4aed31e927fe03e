/* SPDX-License-Identifier: ISC */
/*
 * Client of a local log daemon that takes lines as datagrams: syslog or the journal. Sending
 * never blocks.
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

/* Connect, unless connected. Returns false if the daemon does not listen. */
bool log_socket_open(struct log_socket *log_socket);

void log_socket_close(struct log_socket *log_socket);

/*
 * Send one datagram. Returns false if it was not taken. Connects again if the daemon was
 * restarted.
 */
bool log_socket_send(struct log_socket *log_socket, const char *datagram, size_t length);

#endif
