/* SPDX-License-Identifier: ISC */
/*
 * Parses the command line. The main program acts on the result.
 */
#ifndef PGUSHER_DAEMON_OPTIONS_H
#define PGUSHER_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <sys/types.h>

enum options_action {
	OPTIONS_RUN,
	OPTIONS_CHECK, /* read the configuration, print its problems, and exit */
	OPTIONS_RELOAD, /* make a running process follow the configuration, and exit */
	OPTIONS_VERSION,
	OPTIONS_HELP,
	OPTIONS_INVALID, /* the command line is wrong; the error is on stderr */
};

enum { OPTIONS_PRESETS_MOST = 32 };

/* Texts point into the arguments of the program. */
struct options {
	const char *program; /* name by which the program was called */
	/* The file; always set for RUN, CHECK and RELOAD, and if it follows --version. */
	const char *config;
	const char *user; /* system user to become; NULL: the setting user */
	int verbose; /* number of -v */
	const char *presets[OPTIONS_PRESETS_MOST + 1]; /* `NAME=VALUE`; ends with NULL */
	unsigned preset_count;
	pid_t main_process; /* of --reload; 0: the option was not given */
	bool background;
	bool quiet; /* nothing to stderr */
	bool reboot; /* take over from a running process */
};

/* Parse the command line into `out` and return the requested action. May be called again. */
enum options_action options_read(int argc, char **argv, struct options *out);

/* Print the text of --help to stdout. */
void options_print_help(const struct options *options);

#endif
