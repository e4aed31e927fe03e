/* SPDX-License-Identifier: ISC */
#include "daemon/process.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Blocks from this size on are mapped, and as much free memory at the end of the heap is kept. */
enum { MALLOC_THRESHOLD = 128 * 1024 };

void process_fill_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void process_tune(void)
{
	/* Whoever writes to a peer that has gone learns it from the call. */
	signal(SIGPIPE, SIG_IGN);
	/* Pages of 2 MB for what needs a few kB would make a small process a large one. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	/* Helper threads allocate next to nothing: not worth a heap of their own. */
	mallopt(M_ARENA_MAX, 1);
	/*
	 * Fixed, since malloc would raise both when the first large block is freed, to as much as
	 * 32 and 64 MB, and keep that much after each burst.
	 */
	mallopt(M_MMAP_THRESHOLD, MALLOC_THRESHOLD);
	mallopt(M_TRIM_THRESHOLD, MALLOC_THRESHOLD);
}

/* The parent ends here, without what a normal end would run. */
static bool fork_on(void)
{
	const pid_t child = fork();

	if (child > 0)
		_exit(0);
	return child == 0;
}

bool process_go_background(void)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool done;

	if (null < 0)
		return false;
	/* Twice, so that the one who stays leads no session and can get no terminal. */
	done = fork_on() && setsid() >= 0 && fork_on() && dup2(null, STDIN_FILENO) >= 0 &&
		dup2(null, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0;
	close(null);
	return done;
}
