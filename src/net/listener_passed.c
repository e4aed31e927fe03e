/* SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <stdio.h>

#include "base/log.h"
#include "net/listener_parts.h"

int listener_family(int fd)
{
	struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
	socklen_t length = sizeof(address);
	int listens = 0, type = 0;
	socklen_t size = sizeof(listens);

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens)
		return AF_UNSPEC;
	size = sizeof(type);
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM)
		return AF_UNSPEC;
	if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
		return AF_UNSPEC;
	return address.ss_family;
}

/* Remember the file that the old process's bind() made: this process removes it at its end. */
static void inherit_file(struct listener *listener)
{
	char text[LISTENER_TEXT_SIZE];
	struct stat status;

	log_write(LEVEL_LOG, "got pooler socket: %s", listener_text(listener, text));
	if (!listener->is_unix || stat(listener->path, &status) != 0)
		return;
	listener->device = status.st_dev;
	listener->inode = status.st_ino;
}

static bool take_passed(struct listeners *set, int fd, const struct listen_options *options)
{
	const int family = listener_family(fd);
	const int flags = fcntl(fd, F_GETFL);
	struct listener *listener;

	if ((family != AF_UNIX && family != AF_INET && family != AF_INET6) || flags < 0 ||
		fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
		fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
		return false;
	listener = listener_new(set, fd);
	if (!listener)
		return false;
	listener->is_passed = !options->inherited;
	if (family == AF_UNIX)
		listener_name_unix(listener, options);
	else if (!listener_prepare_passed_tcp(listener, options))
		log_write(LEVEL_WARNING, "setsockopt(TCP_DEFER_ACCEPT): %m");
	if (options->inherited)
		inherit_file(listener);
	else
		log_write(LEVEL_LOG, "socket passed from service manager (fd %d)", fd);
	listener_start(listener);
	return true;
}

bool listeners_take_passed(
	struct listeners *set, const struct listen_options *options, char *why, size_t size)
{
	for (unsigned i = 0; i < options->passed_count; i++) {
		if (!take_passed(set, options->passed[i], options)) {
			snprintf(why, size,
				"socket passed from service manager (fd %d) is no stream socket that "
				"listens",
				options->passed[i]);
			return false;
		}
	}
	return true;
}
