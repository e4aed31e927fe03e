/* SPDX-License-Identifier: ISC */
/*
 * A library to preload into the daemon: while the file exists that PGUSHER_STUCK_ARM names, the
 * thread that PGUSHER_STUCK_THREAD names gets no further than to its next epoll_wait().
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

static bool is_stuck(void)
{
	const char *thread = getenv("PGUSHER_STUCK_THREAD"),
		   *path = getenv("PGUSHER_STUCK_ARM");
	char name[16];

	return thread && path && prctl(PR_GET_NAME, name) == 0 && strcmp(name, thread) == 0 &&
		access(path, F_OK) == 0;
}

int epoll_wait(int fd, struct epoll_event *events, int room, int timeout);
int epoll_wait(int fd, struct epoll_event *events, int room, int timeout)
{
	static int (*real)(int fd, struct epoll_event *events, int room, int timeout);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "epoll_wait");
	while (is_stuck())
		usleep(1000);
	return real(fd, events, room, timeout);
}
