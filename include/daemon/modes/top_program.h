/* SPDX-License-Identifier: ISC */
/*
 * `pgusher top`: executes pgusher-top, a program of its own, so that the daemon is not linked with
 * libpq and ncurses. It is looked for beside the file of this program, then in the folder of
 * installed programs.
 */
#ifndef PGUSHER_DAEMON_MODES_TOP_PROGRAM_H
#define PGUSHER_DAEMON_MODES_TOP_PROGRAM_H

#include <stdbool.h>

/* Whether the command line asks for it: `top` is the first argument. */
bool top_program_is_asked(int argc, char *const *argv);

/*
 * Execute it with the arguments behind `top`, which its name replaces. Returns the exit status of this process only if that
 * fails, after the reason was printed to stderr: 127 if the program is not installed, else 126.
 */
int top_program_run(char **argv);

#endif
