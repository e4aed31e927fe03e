/* SPDX-License-Identifier: ISC */
/*
 * A library to preload into a pooler that callgrind runs. Each turn of the pooler's event loop begins
 * when the load generator and the server have handled all that the pooler sent, and has its events in
 * the order of their descriptors, so that the turns of two runs are the same, whatever else the
 * machine does. What happens in here is not counted.
 *
 * PGUSHER_SETTLED names a file, which the library maps:
 *   pids     processes that must sleep before a turn, 0 for none
 *   wanted   a number; when it changes, callgrind writes what it has counted and starts from 0
 *   done     the last such number
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

struct shared {
	volatile int32_t pids[2];
	volatile int32_t wanted;
	volatile int32_t done;
};

static struct shared *shared;

__attribute__((constructor)) static void map_shared(void)
{
	const char *path = getenv("PGUSHER_SETTLED");
	const int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		shared = at;
}

/* Whether a process sleeps, or has ended. */
static int sleeps(int pid)
{
	char text[256];
	const char *state;
	ssize_t length;
	int fd;

	snprintf(text, sizeof(text), "/proc/%d/stat", pid);
	fd = pid ? open(text, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return 1;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return 1;
	text[length] = 0;
	state = strrchr(text, ')');
	return !state || !strchr("RD", state[2]);
}

/* They receive only from the pooler, so one that sleeps has nothing to do until the pooler sends more. */
static void settle(void)
{
	const struct timespec nap = {.tv_nsec = 100 * 1000};

	for (int i = 0; i < 2; i++)
		while (!sleeps(shared->pids[i]))
			nanosleep(&nap, NULL);
}

static int compare(const void *one, const void *other)
{
	return ((const struct epoll_event *)one)->data.fd -
		((const struct epoll_event *)other)->data.fd;
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
	static int (*real)(int, struct epoll_event *, int, int);
	int count;

	CALLGRIND_TOGGLE_COLLECT;
	if (!real)
		real = (int (*)(int, struct epoll_event *, int, int))dlsym(
			RTLD_NEXT, "epoll_wait");
	if (shared) {
		struct pollfd ready = {.fd = epoll, .events = POLLIN};

		if (shared->done != shared->wanted && poll(&ready, 1, 0) == 0) {
			CALLGRIND_DUMP_STATS;
			shared->done = shared->wanted;
		}
		poll(&ready, 1, timeout);
		timeout = 0;
		settle();
	}
	count = real(epoll, events, most, timeout);
	/* libevent has the descriptor there. */
	if (shared && count > 1)
		qsort(events, (size_t)count, sizeof(*events), compare);
	CALLGRIND_TOGGLE_COLLECT;
	return count;
}
