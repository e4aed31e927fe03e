/* SPDX-License-Identifier: ISC */
#include "daemon/options.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>

#include "base/text.h"

/* Values that getopt_long() returns for long options without a letter. */
enum { CHECK = 256, PRESET, RELOAD };

static const struct option long_options[] = {
	{"daemon", no_argument, NULL, 'd'},
	{"quiet", no_argument, NULL, 'q'},
	{"reboot", no_argument, NULL, 'R'},
	{"user", required_argument, NULL, 'u'},
	{"verbose", no_argument, NULL, 'v'},
	{"check", no_argument, NULL, CHECK},
	{"preset", required_argument, NULL, PRESET},
	{"reload", required_argument, NULL, RELOAD},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static enum options_action refuse(const struct options *options)
{
	fprintf(stderr, "Try \"%s --help\" for more information.\n", options->program);
	return OPTIONS_INVALID;
}

/* The last element of the array stays NULL. */
static bool add_preset(struct options *out)
{
	if (out->preset_count < OPTIONS_PRESETS_MOST) {
		out->presets[out->preset_count++] = optarg;
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

/* --help and --version win over errors behind them on the command line. */
static enum options_action read_letters(int argc, char **argv, struct options *out)
{
	enum options_action action = OPTIONS_RUN;
	int letter;

	while ((letter = getopt_long(argc, argv, "dqRu:vVh", long_options, NULL)) != -1) {
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
		case PRESET:
			if (!add_preset(out))
				return refuse(out);
			break;
		case RELOAD:
			if (!read_process(out))
				return refuse(out);
			action = OPTIONS_RELOAD;
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

enum options_action options_read(int argc, char **argv, struct options *out)
{
	enum options_action action;

	*out = (struct options){.program = argv[0] ? argv[0] : "pgusher"};
	optind = 0; /* restart getopt_long(), including its GNU permutation of arguments */
	action = read_letters(argc, argv, out);
	if (action == OPTIONS_VERSION && optind < argc && argv[optind][0] != '-')
		out->config = argv[optind];
	if (action != OPTIONS_RUN && action != OPTIONS_CHECK && action != OPTIONS_RELOAD)
		return action;
	if (optind + 1 != argc) {
		fprintf(stderr, "%s: no configuration file specified\n", out->program);
		return refuse(out);
	}
	out->config = argv[optind];
	return action;
}

void options_print_help(const struct options *options)
{
	printf("%s is a connection pooler for PostgreSQL.\n", options->program);
	printf("\nUsage:\n  %s [OPTION]... CONFIG_FILE\n", options->program);
	printf("\nOptions:\n"
	       "  -d, --daemon         run in background\n"
	       "  -q, --quiet          write nothing to stderr\n"
	       "  -R, --reboot         take over from a running process\n"
	       "  -u, --user=USERNAME  become this system user\n"
	       "  -v, --verbose        log more; twice: much more\n"
	       "      --preset=NAME=VALUE  the value of a setting that the file does not name\n"
	       "      --check          print the problems of the configuration, and exit\n"
	       "      --reload=PID     make that process, of a service, follow the configuration\n"
	       "                       and the program, both as they are now, and exit\n"
	       "  -V, --version        show versions, and exit; CONFIG_FILE is optional\n"
	       "  -h, --help           show this help, and exit\n");
}
