/* SPDX-License-Identifier: ISC */
#include "base/log_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

bool log_socket_open(struct log_socket *log_socket)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (log_socket->descriptor >= 0)
		return true;
	if (!text_copy(address.sun_path, sizeof(address.sun_path), log_socket->place))
		return false;
	log_socket->descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (log_socket->descriptor < 0)
		return false;
	if (connect(log_socket->descriptor, (struct sockaddr *)&address, sizeof(address)) == 0)
		return true;
	log_socket_close(log_socket);
	return false;
}

void log_socket_close(struct log_socket *log_socket)
{
	if (log_socket->descriptor >= 0)
		(void)close(log_socket->descriptor);
	log_socket->descriptor = -1;
}

static bool try_to_send(struct log_socket *log_socket, const char *datagram, size_t length)
{
	return log_socket_open(log_socket) &&
		send(log_socket->descriptor, datagram, length, MSG_NOSIGNAL) == (ssize_t)length;
}

bool log_socket_send(struct log_socket *log_socket, const char *datagram, size_t length)
{
	if (try_to_send(log_socket, datagram, length))
		return true;
	if (errno == EAGAIN || errno == ENOBUFS)
		return false;
	/* The daemon was restarted and has a new socket: connect again. */
	log_socket_close(log_socket);
	return try_to_send(log_socket, datagram, length);
}
