/* SPDX-License-Identifier: ISC */
/* pgusher-top: what a pooler does, on the whole screen, by the SHOWs of its console. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "top/live.h"
#include "top/screen.h"
#include "top/snapshot_text.h"

static int complain(const struct top_options *options, const char *what)
{
	fprintf(stderr, "%s: %s; --once prints what there is as text\n", options->program,
		what);
	return EXIT_FAILURE;
}

static int show(struct session *session)
{
	const struct top_options *options = session->options;

	if (options->once)
		return snapshot_text_run(session, false);
	switch (screen_kind()) {
	case SCREEN_NONE:
		return complain(options, "stdin or stdout is no terminal");
	case SCREEN_UNKNOWN:
		return complain(options, "the variable TERM names no known terminal");
	case SCREEN_DUMB:
		return snapshot_text_run(session, true);
	case SCREEN_FULL:
		break;
	}
	return live_run(session);
}

int main(int argc, char **argv)
{
	static struct session session;
	struct top_options options;
	int status;

	switch (top_options_read(argc, argv, &options)) {
	case TOP_HELP:
		top_options_print_help(&options);
		return EXIT_SUCCESS;
	case TOP_VERSION:
		printf("pgusher-top %s\n", PACKAGE_VERSION);
		return EXIT_SUCCESS;
	case TOP_INVALID:
		return EXIT_FAILURE;
	case TOP_RUN:
		break;
	}
	setlocale(LC_CTYPE, "");
	top_options_prepare_environment();
	session_begin(&session, &options, clock_monotonic());
	status = show(&session);
	session_end(&session);
	return status;
}
