/* SPDX-License-Identifier: ISC */
/*
 * Parses the command line. The main program acts on the result.
 */
#ifndef PGUSHER_DAEMON_OPTIONS_H
#define PGUSHER_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "setup/convert/convert.h"

enum options_action {
	OPTIONS_RUN,
	OPTIONS_CONVERT, /* convert the configuration of another pooler, and exit */
	OPTIONS_CHECK, /* read the configuration, print its problems, and exit */
	OPTIONS_RELOAD, /* make a running process follow the configuration, and exit */
	OPTIONS_HEALTH, /* ask the pooler of the configuration whether it accepts clients */
	OPTIONS_VERSION,
	OPTIONS_HELP,
	OPTIONS_INVALID, /* the command line is wrong; the error is on stderr */
};

enum {
	OPTIONS_PRESETS_MOST = 32,
	OPTIONS_LISTEN_MOST = 8,
	OPTIONS_ENVIRONMENT_SIZE = 4096, /* bytes of PGUSHER_PRESETS, with its NUL */
};

/* Texts point into the arguments of the program; presets also into the struct itself. */
struct options {
	const char *program; /* name by which the program was called */
	/*
	 * The file; set for CONVERT and RELOAD, and for RUN and CHECK unless `to` or `container` stands in for
	 * it. For HEALTH and VERSION it may be NULL.
	 */
	const char *config;
	const char *user; /* system user to become; NULL: the setting user */
	int verbose; /* number of -v */
	const char *presets[OPTIONS_PRESETS_MOST + 1]; /* `NAME=VALUE`; ends with NULL */
	unsigned preset_count;
	pid_t main_process; /* of --reload; 0: the option was not given */
	struct convert_request convert; /* for OPTIONS_CONVERT */
	const char *listen[OPTIONS_LISTEN_MOST + 1]; /* of --listen; ends with NULL */
	unsigned listen_count;
	const char *to; /* of --to; NULL: none */
	char kept[32]; /* room for a name that `config` points to */
	bool container; /* --container, which comes first: the file is made of the environment */
	char **own; /* with `container`: the options behind it */
	size_t own_count;
	char **command; /* with `container`: what to execute, ended by NULL, perhaps nothing */
	char environment[OPTIONS_ENVIRONMENT_SIZE]; /* presets of the environment */
	bool background;
	bool quiet; /* nothing to stderr */
	bool reboot; /* take over from a running process */
};

/* Parse the command line into `out` and return the requested action. May be called again. */
enum options_action options_read(int argc, char **argv, struct options *out);

/* Print the text of --help to stdout. */
void options_print_help(const struct options *options);

#endif
