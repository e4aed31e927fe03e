/* SPDX-License-Identifier: ISC */
#include "daemon/process.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* malloc maps larger blocks, and keeps at most that much free memory at the end of the heap. */
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

/*
 * The first process of a container inherits all orphans: they leave no zombies if nothing waits for
 * them (wait(2), Notes). Those that have ended before are zombies already.
 */
static void disown_orphans(void)
{
	signal(SIGCHLD, SIG_IGN);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

void process_tune(void)
{
	if (getpid() == 1)
		disown_orphans();
	/* A write to a closed connection reports EPIPE instead. */
	signal(SIGPIPE, SIG_IGN);
	/* A write beyond RLIMIT_FSIZE reports EFBIG instead: a lost log line ends nothing. */
	signal(SIGXFSZ, SIG_IGN);
	/* Huge pages of 2 MB for a few kB each would multiply the memory in use. */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	/* Helper threads allocate too little to need an arena of their own. */
	mallopt(M_ARENA_MAX, 1);
	/*
	 * Fixed thresholds: otherwise malloc raises both when the first large block is freed,
	 * to up to 32 and 64 MB, and keeps that much memory after each burst.
	 */
	mallopt(M_MMAP_THRESHOLD, MALLOC_THRESHOLD);
	mallopt(M_TRIM_THRESHOLD, MALLOC_THRESHOLD);
}

/* Returns true in the child. The parent exits here, without running exit handlers. */
static bool continue_in_child(void)
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
	/* Two forks: the second child leads no session, so it can never get a terminal. */
	done = continue_in_child() && setsid() >= 0 && continue_in_child() &&
		dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
		dup2(null, STDERR_FILENO) >= 0;
	close(null);
	return done;
}
