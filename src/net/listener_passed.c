/* SPDX-License-Identifier: ISC */
#include <fcntl.h>
#include <stdio.h>

#include "base/log.h"
#include "net/listener_parts.h"

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

static bool take_passed(struct listeners *set, const struct listen_socket *passed,
	const struct listen_options *options)
{
	const int fd = passed->fd;
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
	listener->is_passed = passed->is_managers;
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
		if (!take_passed(set, &options->passed[i], options)) {
			snprintf(why, size,
				"socket passed from service manager (fd %d) is no stream socket that "
				"listens",
				options->passed[i].fd);
			return false;
		}
	}
	return true;
}
