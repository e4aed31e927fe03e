/* SPDX-License-Identifier: ISC */
/*
 * The command line. Only read here; who acts on it is main.
 */
#ifndef PGUSHER_DAEMON_OPTIONS_H
#define PGUSHER_DAEMON_OPTIONS_H

#include <stdbool.h>

enum options_wish {
	OPTIONS_RUN,
	OPTIONS_CHECK, /* read the configuration, tell what is wrong with it, and end */
	OPTIONS_VERSION,
	OPTIONS_HELP,
	OPTIONS_WRONG, /* a mistake, of which stderr has been told */
};

/* Texts are those of the command line. */
enum { OPTIONS_PRESETS_MOST = 32 };

struct options {
	const char *program; /* as it was called */
	const char *config; /* the file; set for OPTIONS_RUN and OPTIONS_CHECK only */
	const char *user; /* to become; NULL: as the settings say */
	int verbose; /* how often -v was given */
	const char *presets[OPTIONS_PRESETS_MOST + 1]; /* `NAME=VALUE`; ends with NULL */
	unsigned preset_count;
	bool background;
	bool quiet; /* nothing to stderr */
	bool reboot; /* take over from a running process */
};

/* Read the command line; what it asks for. May be called again. */
enum options_wish options_read(int argc, char **argv, struct options *out);

/* What --help shows, to stdout. */
void options_print_help(const struct options *options);

#endif
