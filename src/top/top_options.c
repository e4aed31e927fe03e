/* SPDX-License-Identifier: ISC */
#include "top/top_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

/* Values that getopt_long() returns for long options without a letter. */
enum { HELP = 256, NO_COLOUR, ONCE };

static const struct option long_options[] = {
	{"dbname", required_argument, NULL, 'd'},
	{"host", required_argument, NULL, 'h'},
	{"interval", required_argument, NULL, 'i'},
	{"port", required_argument, NULL, 'p'},
	{"username", required_argument, NULL, 'U'},
	{"no-password", no_argument, NULL, 'w'},
	{"no-colour", no_argument, NULL, NO_COLOUR},
	{"no-color", no_argument, NULL, NO_COLOUR},
	{"once", no_argument, NULL, ONCE},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, HELP},
	{NULL, 0, NULL, 0},
};

static const usec_t shortest_interval = USEC_PER_SEC / 10,
		    longest_interval = 3600 * USEC_PER_SEC;

static enum top_action refuse(const struct top_options *options)
{
	fprintf(stderr, "Try \"%s --help\" for more information.\n", options->program);
	return TOP_INVALID;
}

static bool read_interval(struct top_options *out)
{
	if (text_to_duration(optarg, &out->interval) && out->interval >= shortest_interval &&
		out->interval <= longest_interval)
		return true;
	fprintf(stderr, "%s: the interval is between 0.1 and 3600 seconds, not \"%s\"\n",
		out->program, optarg);
	return false;
}

static void begin(struct top_options *out, const char *program)
{
	*out = (struct top_options){
		.program = program ? program : "pgusher-top",
		.keywords = {"dbname", "host", "port", "user", "password",
			"fallback_application_name", "client_encoding"},
		.interval = USEC_PER_SEC,
	};
	out->values[TOP_APPLICATION] = "pgusher-top";
	out->values[TOP_ENCODING] = "UTF8";
}

static enum top_action read_letters(int argc, char **argv, struct top_options *out)
{
	int letter;

	while ((letter = getopt_long(argc, argv, "d:h:i:p:U:wV?", long_options, NULL)) != -1) {
		switch (letter) {
		case 'd':
			out->values[TOP_DBNAME] = optarg;
			break;
		case 'h':
			out->values[TOP_HOST] = optarg;
			break;
		case 'i':
			if (!read_interval(out))
				return refuse(out);
			break;
		case 'p':
			out->values[TOP_PORT] = optarg;
			break;
		case 'U':
			out->values[TOP_USER] = optarg;
			break;
		case 'w':
			out->no_password = true;
			break;
		case NO_COLOUR:
			out->no_colour = true;
			break;
		case ONCE:
			out->once = true;
			break;
		case 'V':
			return TOP_VERSION;
		case HELP:
			return TOP_HELP;
		default:
			/* -? is psql's way to ask for help; getopt says the same of what it does not know. */
			return optopt == '?' ? TOP_HELP : refuse(out);
		}
	}
	return TOP_RUN;
}

enum top_action top_options_read(int argc, char **argv, struct top_options *out)
{
	enum top_action action;

	begin(out, argv[0]);
	action = read_letters(argc, argv, out);
	if (action != TOP_RUN)
		return action;
	if (optind < argc && !out->values[TOP_DBNAME])
		out->values[TOP_DBNAME] = argv[optind++];
	if (optind < argc) {
		fprintf(stderr, "%s: unexpected argument \"%s\"\n", out->program, argv[optind]);
		return refuse(out);
	}
	return TOP_RUN;
}

void top_options_prepare_environment(void)
{
	setenv("PGPORT", "6432", 0);
	/* The console is a database of this name, whatever other commands connect to. */
	setenv("PGDATABASE", "pgbouncer", 1);
	/* The console refuses options, and has no session that could be read-only. */
	unsetenv("PGOPTIONS");
	unsetenv("PGTARGETSESSIONATTRS");
}

void top_options_print_help(const struct top_options *options)
{
	printf("%s shows what a pooler does: pgusher or PgBouncer, by its console.\n"
	       "\nUsage:\n  %s [OPTION]... [DBNAME | CONNINFO | URI]\n",
		options->program, options->program);
	printf("\nOptions:\n"
	       "  -h, --host=HOST        address of the pooler, or the folder of its Unix socket\n"
	       "  -p, --port=PORT        its port (PGPORT, or 6432)\n"
	       "  -U, --username=NAME    a user of admin_users or stats_users\n"
	       "  -d, --dbname=DBNAME    the console, or a connection string (pgbouncer)\n"
	       "  -w, --no-password      never ask for a password\n"
	       "  -i, --interval=SECONDS ask so often (1)\n"
	       "      --once             print what there is as text, and exit\n"
	       "      --no-colour        no colours; so does the variable NO_COLOR\n"
	       "  -V, --version          print the version, and exit\n"
	       "      --help             show this help, and exit\n"
	       "\nVariables, services and the password file of libpq are used as psql does.\n");
}
