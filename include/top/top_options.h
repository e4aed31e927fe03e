/* SPDX-License-Identifier: ISC */
/* The command line of pgusher-top, and the parameters of its connection: as psql has them. */
#ifndef PGUSHER_TOP_TOP_OPTIONS_H
#define PGUSHER_TOP_TOP_OPTIONS_H

#include <stdbool.h>

#include "base/clock.h"

/* Parameters of the connection, in the order in which later ones win over earlier ones. */
enum top_parameter {
	TOP_DBNAME, /* a name, or a connection string or URI whose parts the others override */
	TOP_HOST,
	TOP_PORT,
	TOP_USER,
	TOP_PASSWORD,
	TOP_APPLICATION,
	TOP_ENCODING,
	TOP_PARAMETERS
};

enum top_action { TOP_RUN, TOP_HELP, TOP_VERSION, TOP_INVALID };

struct top_options {
	const char *program;
	/* For libpq: NULL at the end, and where nothing is given. They point to the command line. */
	const char *keywords[TOP_PARAMETERS + 1], *values[TOP_PARAMETERS + 1];
	usec_t interval;
	bool once, no_colour, no_password;
};

/* Parse the command line. Errors are printed to stderr. Call it once in a process. */
enum top_action top_options_read(int argc, char **argv, struct top_options *out);

/*
 * Set what the console needs, and a PostgreSQL does not, in the environment that libpq reads: the
 * port 6432, unless there is PGPORT, and no parameters that are meant for other databases.
 */
void top_options_prepare_environment(void);

void top_options_print_help(const struct top_options *options);

#endif
