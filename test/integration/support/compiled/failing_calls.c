/* SPDX-License-Identifier: ISC */
/*
 * A library to preload into the daemon, which makes system calls fail and counts them.
 *
 * PGUSHER_FAULTS is a list like `recv:EINTR:3,calloc:ENOMEM:50`: each third call of recv fails
 * with EINTR, and so on. Calls fail only while the file exists that PGUSHER_FAULTS_ARM names.
 * `clock:SECONDS:1` moves the time of day, not the monotonic clock, while the file exists.
 *
 * PGUSHER_SYSLOG names a socket that is used instead of /dev/log.
 *
 * PGUSHER_COUNTS names a file of 64-bit counters, which the library maps: for each call its number
 * and how many of them ended with EAGAIN, in the order of the wraps below.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

static const struct {
	const char *name;
	int number;
} errors[] = {
	{"EAGAIN", EAGAIN},
	{"ECONNABORTED", ECONNABORTED},
	{"ECONNREFUSED", ECONNREFUSED},
	{"ECONNRESET", ECONNRESET},
	{"EINTR", EINTR},
	{"EMFILE", EMFILE},
	{"ENFILE", ENFILE},
	{"ENOBUFS", ENOBUFS},
	{"ENOMEM", ENOMEM},
	{"EPIPE", EPIPE},
};

static bool armed(void)
{
	const char *path = getenv("PGUSHER_FAULTS_ARM");

	return path && syscall(SYS_access, path, F_OK) == 0;
}

/* The entry `name:WHAT:EVERY` of the list; where WHAT begins, or NULL. */
static const char *find(const char *name)
{
	const char *list = getenv("PGUSHER_FAULTS");
	size_t length = strlen(name);

	while (list) {
		if (strncmp(list, name, length) == 0 && list[length] == ':')
			return list + length + 1;
		list = strchr(list, ',');
		if (list)
			list++;
	}
	return NULL;
}

/* Whether this call must fail; sets errno then. */
static bool fails(const char *name, unsigned *calls)
{
	const char *what;
	const char *every;
	int saved = errno;

	what = find(name);
	if (!what || !armed()) {
		errno = saved;
		return false;
	}
	every = strchr(what, ':');
	if (!every ||
		__atomic_add_fetch(calls, 1, __ATOMIC_RELAXED) % (unsigned)atoi(every + 1)) {
		errno = saved;
		return false;
	}
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strncmp(what, errors[i].name, (size_t)(every - what)) == 0)
			errno = errors[i].number;
	return true;
}

enum call {
	CALL_recv,
	CALL_send,
	CALL_sendmsg,
	CALL_accept4,
	CALL_socket,
	CALL_connect,
	CALL_epoll_wait,
	CALL_epoll_ctl,
	CALL_getrandom,
	CALL_mmap,
	CALL_read,
	CALL_write,
	CALL_recvmsg,
	CALL_readv,
	CALL_writev,
	CALL_poll,
	CALL_timerfd_settime,
	CALL_COUNT
};

static uint64_t (*counts)[2];

__attribute__((constructor)) static void open_counts(void)
{
	const char *path = getenv("PGUSHER_COUNTS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *mapped;

	if (fd < 0)
		return;
	mapped = (void *)syscall(SYS_mmap, NULL, CALL_COUNT * sizeof(*counts),
		PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped != MAP_FAILED)
		counts = mapped;
	close(fd);
}

static void count(enum call call, bool again)
{
	if (!counts)
		return;
	counts[call][0]++;
	if (again)
		counts[call][1]++;
}

static bool is_syslog(const struct sockaddr *address)
{
	const struct sockaddr_un *local = (const struct sockaddr_un *)address;

	return address->sa_family == AF_UNIX && strcmp(local->sun_path, "/dev/log") == 0 &&
		getenv("PGUSHER_SYSLOG");
}

/* The address to connect to. */
static const struct sockaddr *diverted(const struct sockaddr *address)
{
	static struct sockaddr_un other = {.sun_family = AF_UNIX};

	if (!is_syslog(address))
		return address;
	strncpy(other.sun_path, getenv("PGUSHER_SYSLOG"), sizeof(other.sun_path) - 1);
	return (const struct sockaddr *)&other;
}

#define WRAP(result, name, parameters, arguments, failure)                                     \
	result name parameters;                                                                \
	result name parameters                                                                 \
	{                                                                                      \
		static result(*real) parameters;                                               \
		static unsigned calls;                                                         \
		result made;                                                                   \
                                                                                               \
		if (!real)                                                                     \
			*(void **)&real = dlsym(RTLD_NEXT, #name);                             \
		if (fails(#name, &calls))                                                      \
			return failure;                                                        \
		made = real arguments;                                                         \
		count(CALL_##name, made == failure && errno == EAGAIN);                        \
		return made;                                                                   \
	}

WRAP(ssize_t, recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags), -1)
WRAP(ssize_t, send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags),
	-1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags),
	-1)
WRAP(int, accept4, (int fd, struct sockaddr *address, socklen_t *size, int flags),
	(fd, address, size, flags), -1)
WRAP(int, socket, (int family, int type, int protocol), (family, type, protocol), -1)
WRAP(int, connect, (int fd, const struct sockaddr *address, socklen_t size),
	(fd, diverted(address), is_syslog(address) ? sizeof(struct sockaddr_un) : size), -1)
WRAP(int, epoll_wait, (int fd, struct epoll_event *events, int room, int timeout),
	(fd, events, room, timeout), -1)
WRAP(int, epoll_ctl, (int fd, int operation, int other, struct epoll_event *event),
	(fd, operation, other, event), -1)
WRAP(ssize_t, getrandom, (void *data, size_t size, unsigned flags), (data, size, flags), -1)
WRAP(void *, mmap, (void *at, size_t size, int protection, int flags, int fd, off_t offset),
	(at, size, protection, flags, fd, offset), MAP_FAILED)
WRAP(ssize_t, read, (int fd, void *data, size_t size), (fd, data, size), -1)
WRAP(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), -1)
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), -1)
WRAP(ssize_t, readv, (int fd, const struct iovec *parts, int room), (fd, parts, room), -1)
WRAP(ssize_t, writev, (int fd, const struct iovec *parts, int room), (fd, parts, room), -1)
WRAP(int, poll, (struct pollfd * list, nfds_t room, int timeout), (list, room, timeout), -1)
WRAP(int, timerfd_settime,
	(int fd, int flags, const struct itimerspec *next, struct itimerspec *last),
	(fd, flags, next, last), -1)

#ifndef WITHOUT_MEMORY
void *malloc(size_t size)
{
	static unsigned calls;

	return fails("malloc", &calls) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	static unsigned calls;

	return fails("calloc", &calls) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
	static unsigned calls;

	return fails("realloc", &calls) ? NULL : __libc_realloc(memory, size);
}
#endif

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long result = syscall(SYS_clock_gettime, clock, now);
	const char *shift = find("clock");

	if (result == 0 && clock == CLOCK_REALTIME && shift && armed())
		now->tv_sec += atol(shift);
	return (int)result;
}
