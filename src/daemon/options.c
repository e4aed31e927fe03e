/* SPDX-License-Identifier: ISC */
#include "daemon/options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Values that getopt_long() returns for long options without a letter. */
enum {
	CHECK = 256,
	CONTAINER,
	CONVERT,
	DIFF,
	FROM,
	HEALTH,
	LISTEN,
	OUTPUT,
	PRESET,
	RELOAD,
	TO,
};

static const struct option long_options[] = {
	{"daemon", no_argument, NULL, 'd'},
	{"quiet", no_argument, NULL, 'q'},
	{"reboot", no_argument, NULL, 'R'},
	{"user", required_argument, NULL, 'u'},
	{"verbose", no_argument, NULL, 'v'},
	{"check", no_argument, NULL, CHECK},
	{"convert", no_argument, NULL, CONVERT},
	{"diff", no_argument, NULL, DIFF},
	{"from", required_argument, NULL, FROM},
	{"output", required_argument, NULL, OUTPUT},
	{"preset", required_argument, NULL, PRESET},
	{"reload", required_argument, NULL, RELOAD},
	{"listen", required_argument, NULL, LISTEN},
	{"to", required_argument, NULL, TO},
	{"health", no_argument, NULL, HEALTH},
	{"container", no_argument, NULL, CONTAINER},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static enum options_action refuse(const struct options *options)
{
	fprintf(stderr, "Try \"%s --help\" for more information.\n", options->program);
	return OPTIONS_INVALID;
}

static enum options_action refuse_late_container(const struct options *options)
{
	fprintf(stderr, "%s: --container is the first option\n", options->program);
	return refuse(options);
}

/* The last element of the array stays NULL. */
static bool add_preset(struct options *out, const char *assignment)
{
	if (out->preset_count < OPTIONS_PRESETS_MOST) {
		out->presets[out->preset_count++] = assignment;
		return true;
	}
	fprintf(stderr, "%s: more than %d presets\n", out->program, OPTIONS_PRESETS_MOST);
	return false;
}

static bool read_process(struct options *out)
{
	long long number;

	if (text_to_integer(optarg, &number) && number > 0 && number <= INT_MAX) {
		out->main_process = (pid_t)number;
		return true;
	}
	fprintf(stderr, "%s: --reload needs the number of a process, not \"%s\"\n",
		out->program, optarg);
	return false;
}

static bool add_listen(struct options *out)
{
	if (out->listen_count < OPTIONS_LISTEN_MOST) {
		out->listen[out->listen_count++] = optarg;
		return true;
	}
	fprintf(stderr, "%s: more than %d times --listen\n", out->program, OPTIONS_LISTEN_MOST);
	return false;
}

/*
 * PGUSHER_PRESETS has presets separated by blanks, for where neither the command line nor the file
 * is the operator's to write. Those of the command line come later.
 */
static bool add_presets_of_environment(struct options *out)
{
	static const char blanks[] = " \t\n";
	const char *text = getenv("PGUSHER_PRESETS");
	char *word, *rest;

	if (!text)
		return true;
	if (strlen(text) >= sizeof(out->environment)) {
		fprintf(stderr, "%s: PGUSHER_PRESETS is longer than %zu bytes\n", out->program,
			sizeof(out->environment) - 1);
		return false;
	}
	memcpy(out->environment, text, strlen(text) + 1);
	for (word = strtok_r(out->environment, blanks, &rest); word;
		word = strtok_r(NULL, blanks, &rest)) {
		if (!add_preset(out, word))
			return false;
	}
	return true;
}

/* --help and --version win over errors behind them on the command line. */
static enum options_action read_letters(int argc, char **argv, struct options *out)
{
	/* Behind --container the first word that is no option begins a command of its own. */
	const char *letters = out->container ? "+dqRu:vVh" : "dqRu:vVh";
	enum options_action action = OPTIONS_RUN;
	int letter;

	while ((letter = getopt_long(argc, argv, letters, long_options, NULL)) != -1) {
		switch (letter) {
		case 'd':
			out->background = true;
			break;
		case 'q':
			out->quiet = true;
			break;
		case 'R':
			out->reboot = true;
			break;
		case 'u':
			out->user = optarg;
			break;
		case 'v':
			out->verbose++;
			break;
		case CHECK:
			action = OPTIONS_CHECK;
			break;
		case CONVERT:
			action = OPTIONS_CONVERT;
			break;
		case DIFF:
			out->convert.differences = true;
			break;
		case FROM:
			out->convert.pooler = optarg;
			break;
		case OUTPUT:
			out->convert.output = optarg;
			break;
		case PRESET:
			if (!add_preset(out, optarg))
				return refuse(out);
			break;
		case RELOAD:
			if (!read_process(out))
				return refuse(out);
			action = OPTIONS_RELOAD;
			break;
		case HEALTH:
			action = OPTIONS_HEALTH;
			break;
		case LISTEN:
			if (!add_listen(out))
				return refuse(out);
			break;
		case TO:
			out->to = optarg;
			break;
		case CONTAINER:
			if (!out->container)
				return refuse_late_container(out);
			break;
		case 'V':
			return OPTIONS_VERSION;
		case 'h':
			return OPTIONS_HELP;
		default:
			return refuse(out);
		}
	}
	return action;
}

static bool is_file_name(const char *word)
{
	const size_t length = strlen(word), suffix = strlen(".ini");

	return length > suffix && strcmp(word + length - suffix, ".ini") == 0;
}

/* Can the command line, or the environment, stand in for the file? */
static bool may_lack_file(enum options_action action)
{
	return action == OPTIONS_RUN || action == OPTIONS_CHECK || action == OPTIONS_HEALTH;
}

/* What is behind the options of --container: a command, a file, or nothing. */
static void take_command(int argc, char **argv, struct options *out)
{
	out->own = argv + 2;
	out->own_count = (size_t)(optind - 2);
	out->command = argv + optind;
	if (optind + 1 == argc && is_file_name(argv[optind])) {
		out->config = argv[optind];
		out->command++;
	}
}

/* The file is left out where the command line, or the environment, stands in for it. */
static bool take_file(int argc, char **argv, enum options_action action, struct options *out)
{
	if (optind == argc && may_lack_file(action) && (out->to || action == OPTIONS_HEALTH)) {
		/* --health alone asks what --container --health would. */
		out->own = argv + 1;
		out->own_count = (size_t)(argc - 1);
		out->command = argv + argc;
		return true;
	}
	if (optind == argc && out->listen_count > 0) {
		fprintf(stderr, "%s: --listen needs --to\n", out->program);
		return false;
	}
	if (optind + 1 != argc) {
		fprintf(stderr, "%s: no configuration file specified\n", out->program);
		return false;
	}
	if (out->to || out->listen_count > 0) {
		fprintf(stderr, "%s: %s and a configuration file exclude each other\n",
			out->program, out->to ? "--to" : "--listen");
		return false;
	}
	out->config = argv[optind];
	return true;
}

/* Whether the options of a conversion fit the rest of the command line. */
static bool conversion_fits(const struct options *options, enum options_action action)
{
	const struct convert_request *convert = &options->convert;

	if (action != OPTIONS_CONVERT &&
		(convert->pooler || convert->output || convert->differences)) {
		fprintf(stderr, "%s: --from, --output and --diff need --convert\n",
			options->program);
		return false;
	}
	if (convert->output && convert->differences) {
		fprintf(stderr, "%s: --output and --diff exclude each other\n",
			options->program);
		return false;
	}
	return true;
}

enum options_action options_read(int argc, char **argv, struct options *out)
{
	enum options_action action;

	*out = (struct options){.program = argv[0] ? argv[0] : "pgusher"};
	out->container = argc > 1 && strcmp(argv[1], "--container") == 0;
	if (!add_presets_of_environment(out))
		return refuse(out);
	optind = 0; /* restart getopt_long(), including its GNU permutation of arguments */
	action = read_letters(argc, argv, out);
	if (action == OPTIONS_VERSION && optind < argc && argv[optind][0] != '-')
		out->config = argv[optind];
	if (action == OPTIONS_VERSION || action == OPTIONS_HELP || action == OPTIONS_INVALID)
		return action;
	if (!conversion_fits(out, action))
		return refuse(out);
	if (out->container && may_lack_file(action))
		take_command(argc, argv, out);
	else if (!take_file(argc, argv, action, out))
		return refuse(out);
	out->convert.path = out->config;
	return action;
}

void options_print_help(const struct options *options)
{
	printf("%s is a connection pooler for PostgreSQL.\n", options->program);
	printf("\nUsage:\n  %s [OPTION]... CONFIG_FILE\n"
	       "  %s [OPTION]... [--listen=PLACE] --to=SERVER\n"
	       "  %s --health [CONFIG_FILE | --listen=PLACE]\n"
	       "  %s --container [OPTION]... [COMMAND [ARGUMENT]...]\n"
	       "  %s top [OPTION]... (shows what a running pooler does: pgusher top --help)\n",
		options->program, options->program, options->program, options->program,
		options->program);
	printf("\nOptions:\n"
	       "  -d, --daemon         run in background\n"
	       "  -q, --quiet          write nothing to stderr\n"
	       "  -R, --reboot         take over from a running process\n"
	       "  -u, --user=USERNAME  become this system user\n"
	       "  -v, --verbose        log more; twice: much more\n"
	       "      --preset=NAME=VALUE  the value of a setting that the file does not name\n"
	       "      --listen=PLACE   listen on this [ADDRESS:]PORT or socket FOLDER, without a file\n"
	       "      --to=SERVER      serve this connection string or URL, without a file\n"
	       "      --health         ask whether the pooler accepts clients, and exit\n"
	       "      --container      make the configuration of environment variables\n"
	       "      --check          print the problems of the configuration, and exit\n"
	       "      --reload=PID     make that process, of a service, follow the configuration\n"
	       "                       and the program, both as they are now, and exit\n"
	       "      --convert        make ours of the configuration of another pooler\n"
	       "      --from=POOLER    of which: pgbouncer, odyssey, pgcat, pgagroal\n"
	       "      --output=FILE    write it to this new file, not to stdout\n"
	       "      --diff           print only what differs from the defaults\n"
	       "  -V, --version        show versions, and exit; CONFIG_FILE is optional\n"
	       "  -h, --help           show this help, and exit\n");
}
