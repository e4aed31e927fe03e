/* SPDX-License-Identifier: ISC */
#include "daemon/modes/top_program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "pgusher-top"

/* As a shell's. */
enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

bool top_program_is_asked(int argc, char *const *argv)
{
	return argc > 1 && strcmp(argv[1], "top") == 0;
}

/* The path of a file beside this program's own; false if that cannot be told. */
static bool find_beside(char *out, size_t size)
{
	char own[PATH_MAX];
	const ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	if (length <= 0)
		return false;
	own[length] = '\0';
	slash = strrchr(own, '/');
	if (!slash)
		return false;
	slash[1] = '\0';
	return (size_t)snprintf(out, size, "%s" PROGRAM, own) < size;
}

int top_program_run(char **argv)
{
	static char name[] = PROGRAM;
	char path[PATH_MAX];

	argv[1] = name;
	if (find_beside(path, sizeof(path)) && access(path, F_OK) == 0)
		execv(path, argv + 1);
	else
		execv(BINDIR "/" PROGRAM, argv + 1);
	if (errno != ENOENT) {
		fprintf(stderr, "%s: cannot execute " PROGRAM ": %s\n", argv[0],
			strerror(errno));
		return NOT_EXECUTABLE;
	}
	fprintf(stderr, "%s: " PROGRAM " is not installed%s\n", argv[0],
		HAVE_TOP ? "" : ": this was built without libpq or ncurses");
	return NOT_FOUND;
}
