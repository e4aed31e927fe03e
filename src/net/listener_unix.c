/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "net/listener_parts.h"

static bool unix_path(char *out, size_t size, const char *dir, int port)
{
	const int length = snprintf(out, size, "%s/.s.PGSQL.%d", dir, port);

	return length > 0 && (size_t)length < size;
}

bool listener_unix_is_in_use(
	const char *unix_dir, int port, const int *kept, unsigned kept_count)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct sockaddr_un address;
	socklen_t length;
	bool connected;
	int fd;

	if (!unix_dir || !*unix_dir || !unix_path(path, sizeof(path), unix_dir, port))
		return false;
	length = address_unix(&address, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	/* EAGAIN means that the queue of the listening process is full. */
	connected =
		connect(fd, (const struct sockaddr *)&address, length) == 0 || errno == EAGAIN;
	if (connected && listener_is_kept(fd, path, kept, kept_count))
		connected = false;
	close(fd);
	return connected;
}

static bool find_group(const char *name, gid_t *out)
{
	const struct group *found = getgrnam(name);
	long long number;

	if (found) {
		*out = found->gr_gid;
		return true;
	}
	if (!text_to_integer(name, &number) || number < 0 || number >= (gid_t)-1)
		return false;
	*out = (gid_t)number;
	return true;
}

/*
 * Set group and mode of the socket's file, before listen(): no client can connect before that.
 */
static bool set_file_access(struct listener *listener, const struct listen_options *options)
{
	struct stat status;
	gid_t group;

	if (options->unix_group && *options->unix_group) {
		if (!find_group(options->unix_group, &group)) {
			log_write(LEVEL_ERROR, "unknown group in unix_socket_group: %s",
				options->unix_group);
			return false;
		}
		if (chown(listener->path, (uid_t)-1, group) != 0) {
			log_write(LEVEL_ERROR, "chown(%s): %m", listener->path);
			return false;
		}
	}
	if (chmod(listener->path, (mode_t)options->unix_mode) != 0 ||
		stat(listener->path, &status) != 0) {
		log_write(LEVEL_ERROR, "chmod(%s): %m", listener->path);
		return false;
	}
	listener->device = status.st_dev;
	listener->inode = status.st_ino;
	return true;
}

static bool is_abstract(const struct listener *listener)
{
	return listener->path[0] == '@';
}

/* The socket of an earlier process, with clients that may wait in it; its access may change. */
static bool go_on_with_kept(struct listener *listener, const struct listen_options *options)
{
	char text[LISTENER_TEXT_SIZE];

	if (!is_abstract(listener) && !set_file_access(listener, options))
		return false;
	log_write(LEVEL_LOG, "service manager has kept %s", listener_text(listener, text));
	return true;
}

static bool bind_unix(struct listener *listener, const struct listen_options *options)
{
	struct sockaddr_un address;
	const socklen_t length = address_unix(&address, listener->path);
	bool done;

	if (!is_abstract(listener))
		unlink(listener->path);
	if (bind(listener->fd, (const struct sockaddr *)&address, length) != 0) {
		log_write(LEVEL_ERROR, "cannot listen on unix:%s: bind(): %m", listener->path);
		return false;
	}
	done = is_abstract(listener) || set_file_access(listener, options);
	if (done && listen(listener->fd, options->backlog) != 0) {
		log_write(
			LEVEL_ERROR, "cannot listen on unix:%s: listen(): %m", listener->path);
		done = false;
	}
	if (!done && !is_abstract(listener))
		unlink(listener->path);
	return done;
}

/* PostgreSQL marks a port in use with a lock file beside the socket. */
static bool lock_file_exists(const struct listener *listener)
{
	char lock[sizeof(listener->path) + sizeof(".lock")];

	if (is_abstract(listener))
		return false;
	snprintf(lock, sizeof(lock), "%s.lock", listener->path);
	return access(lock, F_OK) == 0;
}

static bool open_at(struct listener *listener, const struct listen_options *options,
	bool is_kept, char *why, size_t size)
{
	if (is_kept)
		return go_on_with_kept(listener, options);
	if (lock_file_exists(listener)) {
		snprintf(why, size, "unix port %d is in use", options->port);
		return false;
	}
	return bind_unix(listener, options);
}

bool listeners_open_unix(
	struct listeners *set, const struct listen_options *options, char *why, size_t size)
{
	char path[sizeof(((struct listener *)0)->path)];
	struct listener *listener;
	int fd, kept;

	if (!options->unix_dir || !*options->unix_dir)
		return true;
	snprintf(why, size, "failed to create unix socket");
	if (!unix_path(path, sizeof(path), options->unix_dir, options->port)) {
		log_write(LEVEL_ERROR, "unix_socket_dir is too long: %s", options->unix_dir);
		return false;
	}
	kept = listener_take_kept_unix(options, path);
	fd = kept >= 0 ? kept : socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		log_write(LEVEL_ERROR, "socket(): %m");
		return false;
	}
	listener = listener_new(set, fd);
	if (listener) {
		listener->is_unix = true;
		listener->address =
			(struct address){.family = AF_UNIX, .port = (uint16_t)options->port};
		strcpy(listener->path, path);
		if (open_at(listener, options, kept >= 0, why, size)) {
			listener_start(listener);
			return true;
		}
	}
	free(listener);
	close(fd);
	return false;
}

void listener_name_unix(struct listener *listener, const struct listen_options *options)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(address);
	size_t size;

	listener->is_unix = true;
	listener->address =
		(struct address){.family = AF_UNIX, .port = (uint16_t)options->port};
	if (getsockname(listener->fd, (struct sockaddr *)&address, &length) != 0)
		return;
	size = length - offsetof(struct sockaddr_un, sun_path);
	if (size == 0 || size > sizeof(listener->path))
		return;
	memcpy(listener->path, address.sun_path, size);
	if (listener->path[0] == '\0')
		listener->path[0] = '@'; /* abstract name space: there is no final NUL */
	listener->path[size < sizeof(listener->path) ? size : size - 1] = '\0';
}

/* Compare device and inode: another process may have bound a socket of its own there. */
void listener_unlink(const struct listener *listener)
{
	struct stat status;

	if (!listener->is_unix || listener->is_passed || is_abstract(listener))
		return;
	if (lstat(listener->path, &status) == 0 && status.st_dev == listener->device &&
		status.st_ino == listener->inode)
		unlink(listener->path);
}
