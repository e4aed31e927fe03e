/* SPDX-License-Identifier: ISC */
#include "net/tcp_options.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

static bool set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
}

/* The errno of the first of several calls that failed; 0: none has. */
struct outcome {
	int error;
};

static void try_unless_zero(struct outcome *outcome, int fd, int level, int option, int value)
{
	if (value != 0 && !set(fd, level, option, value) && outcome->error == 0)
		outcome->error = errno;
}

bool tcp_options_apply(int fd, const struct tcp_options *options)
{
	struct outcome outcome = {0};

	try_unless_zero(&outcome, fd, IPPROTO_TCP, TCP_NODELAY, 1);
	try_unless_zero(&outcome, fd, SOL_SOCKET, SO_SNDBUF, options->buffer);
	try_unless_zero(&outcome, fd, SOL_SOCKET, SO_RCVBUF, options->buffer);
	try_unless_zero(&outcome, fd, IPPROTO_TCP, TCP_USER_TIMEOUT, options->user_timeout);
	if (options->keepalive) {
		try_unless_zero(&outcome, fd, SOL_SOCKET, SO_KEEPALIVE, 1);
		try_unless_zero(&outcome, fd, IPPROTO_TCP, TCP_KEEPCNT, options->keepcnt);
		try_unless_zero(&outcome, fd, IPPROTO_TCP, TCP_KEEPIDLE, options->keepidle);
		try_unless_zero(&outcome, fd, IPPROTO_TCP, TCP_KEEPINTVL, options->keepintvl);
	}
	if (outcome.error != 0)
		errno = outcome.error;
	return outcome.error == 0;
}

static bool copy_option(int to, int from, int level, int option)
{
	int value;
	socklen_t length = sizeof(value);

	return getsockopt(from, level, option, &value, &length) == 0 &&
		set(to, level, option, value);
}

/* getsockopt() returns twice the size that was set: socket(7). */
static bool copy_buffer_size(int to, int from, int option)
{
	int value;
	socklen_t length = sizeof(value);

	return getsockopt(from, SOL_SOCKET, option, &value, &length) == 0 &&
		set(to, SOL_SOCKET, option, value / 2);
}

/* Set the defaults, copied from `fresh`, a socket with no options set. */
static bool reset(int fd, int fresh)
{
	static const int keepalive_options[] = {TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL};

	for (size_t i = 0; i < sizeof(keepalive_options) / sizeof(keepalive_options[0]); i++)
		if (!copy_option(fd, fresh, IPPROTO_TCP, keepalive_options[i]))
			return false;
	if (!set(fd, SOL_SOCKET, SO_KEEPALIVE, 0) || !set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 0))
		return false;
	if (!copy_buffer_size(fd, fresh, SO_SNDBUF) || !copy_buffer_size(fd, fresh, SO_RCVBUF))
		return false;
#ifdef SO_BUF_LOCK
	/*
	 * A size that was set turned off the kernel's tuning; older kernels cannot turn it on.
	 */
	(void)set(fd, SOL_SOCKET, SO_BUF_LOCK, 0);
#endif
	return true;
}

bool tcp_options_change(int fd, const struct tcp_options *options)
{
	int family;
	socklen_t length = sizeof(family);
	int fresh, error;
	bool done;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) != 0)
		return false;
	fresh = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fresh < 0)
		return false;
	done = reset(fd, fresh) && tcp_options_apply(fd, options);
	error = errno;
	close(fresh);
	errno = error;
	return done;
}
