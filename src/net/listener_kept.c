/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "net/listener_parts.h"

/* Do both names lead to one file, as by a symbolic link to its folder? */
static bool is_same_file(const struct sockaddr_un *a, const struct sockaddr_un *b)
{
	struct stat one, other;

	return a->sun_path[0] != '\0' && b->sun_path[0] != '\0' &&
		stat(a->sun_path, &one) == 0 && stat(b->sun_path, &other) == 0 &&
		one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

static bool has_path(int fd, const char *path)
{
	struct sockaddr_un expected = {0}, found = {.sun_family = AF_UNSPEC};
	const socklen_t expected_length = address_unix(&expected, path);
	socklen_t length = sizeof(found);

	if (listener_family(fd) != AF_UNIX ||
		getsockname(fd, (struct sockaddr *)&found, &length) != 0)
		return false;
	return (length == expected_length && memcmp(&found, &expected, length) == 0) ||
		is_same_file(&found, &expected);
}

static bool has_address(int fd, const struct sockaddr *at)
{
	const int family = listener_family(fd);
	struct address expected, found;

	if (family != at->sa_family || (family != AF_INET && family != AF_INET6))
		return false;
	expected = address_of(at,
		family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	found = address_local(fd);
	return address_equal(&expected, &found);
}

static bool is_any(const struct address *address)
{
	static const uint8_t any[sizeof(address->bytes)];

	return memcmp(address->bytes, any, sizeof(any)) == 0;
}

/* Of two addresses of one family with the same port only one can be used, if one is for all. */
static bool is_in_the_way(int fd, const struct sockaddr *at, socklen_t length)
{
	const struct address wanted = address_of(at, length);
	struct address found;

	if (listener_family(fd) != at->sa_family)
		return false;
	found = address_local(fd);
	return found.port == wanted.port && (is_any(&found) || is_any(&wanted));
}

/* Take over the entry. Returns its descriptor, or -1 if it cannot be used. */
static int take(int *entry)
{
	const int fd = *entry, flags = fcntl(fd, F_GETFL);

	*entry = -1;
	if (flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
		fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
		return fd;
	close(fd);
	return -1;
}

int listener_take_kept_tcp(const struct listen_options *options, const struct sockaddr *at)
{
	for (unsigned i = 0; i < options->kept_count; i++) {
		if (options->kept[i] >= 0 && has_address(options->kept[i], at))
			return take(&options->kept[i]);
	}
	return -1;
}

bool listener_end_kept_in_the_way(
	const struct listen_options *options, const struct sockaddr *at, socklen_t length)
{
	bool ended = false;

	for (unsigned i = 0; i < options->kept_count; i++) {
		if (options->kept[i] < 0 || !is_in_the_way(options->kept[i], at, length))
			continue;
		/* The manager has a copy, so that close() alone would not end it. */
		shutdown(options->kept[i], SHUT_RDWR);
		close(options->kept[i]);
		options->kept[i] = -1;
		ended = true;
	}
	return ended;
}

/* Of a listening socket: the process that called listen(). */
static pid_t listening_process(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : -1;
}

/*
 * Two sockets may have the name of one path, since a file may be replaced. The kernel tells for
 * both a listening socket and a connection to one which process called listen(). A connection
 * that was refused because the queue is full has the process 0: then the name decides.
 */
static bool ends_at(int connected, int fd, const char *path)
{
	const pid_t process = listening_process(connected);

	return has_path(fd, path) && (process == 0 || process == listening_process(fd));
}

bool listener_is_kept(int connected, const char *path, const int *kept, unsigned kept_count)
{
	for (unsigned i = 0; i < kept_count; i++) {
		if (kept[i] >= 0 && ends_at(connected, kept[i], path))
			return true;
	}
	return false;
}

int listener_take_kept_unix(const struct listen_options *options, const char *path)
{
	struct sockaddr_un address;
	const socklen_t length = address_unix(&address, path);
	int connected, found = -1;

	if (options->kept_count == 0)
		return -1;
	connected = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (connected < 0)
		return -1;
	if (connect(connected, (const struct sockaddr *)&address, length) == 0 ||
		errno == EAGAIN) {
		for (unsigned i = 0; i < options->kept_count && found < 0; i++) {
			if (options->kept[i] >= 0 && ends_at(connected, options->kept[i], path))
				found = take(&options->kept[i]);
		}
	}
	close(connected);
	return found;
}
