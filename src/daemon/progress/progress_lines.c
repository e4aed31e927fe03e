/* SPDX-License-Identifier: ISC */
#include "daemon/progress/progress_lines.h"

#include "base/log.h"
#include "daemon/systemd.h"
#include "session/serving/progress.h"

/* Time between two looks, before the first line, and between two lines. */
#define LOOK_PERIOD USEC_PER_SEC
#define FIRST_LINE (2 * USEC_PER_SEC)
#define LINE_PERIOD (10 * USEC_PER_SEC)

static bool is_line_due(const struct progress_lines *lines, usec_t now)
{
	return lines->logged == 0 ? now - lines->since >= FIRST_LINE
				  : now - lines->logged >= LINE_PERIOD;
}

static void say(struct progress_lines *lines, const struct progress *progress, usec_t now)
{
	char line[PROGRESS_LINE_SIZE];

	if (progress->since != lines->since)
		lines->logged = 0; /* another wait */
	lines->since = progress->since;
	progress_line(progress, now, line);
	systemd_progress(line);
	lines->is_shown = true;
	if (!is_line_due(lines, now))
		return;
	lines->logged = now;
	log_write(LEVEL_LOG, "%s", line);
}

/* Nothing is waited for any more: a pause is complete, or a command has ended the wait. */
static void end(struct progress_lines *lines, const struct registry *registry, usec_t now)
{
	static const char complete[] = "PAUSE is complete: no server is in use";
	const bool paused = registry->process->operation == OPERATION_PAUSED;

	if (lines->logged > 0 && paused)
		log_write(LEVEL_LOG, "%s, after %llu s", complete,
			(unsigned long long)((now - lines->since) / USEC_PER_SEC));
	if (paused)
		systemd_progress(complete);
	else if (lines->is_shown)
		systemd_progress(NULL);
	*lines = (struct progress_lines){.looked = now, .is_shown = paused};
}

void progress_lines_work(struct progress_lines *lines, const struct registry *registry)
{
	const usec_t now = loop_now(registry->loop);
	struct progress progress;

	if (lines->looked > 0 && now - lines->looked < LOOK_PERIOD)
		return;
	lines->looked = now;
	if (progress_of_process(registry, &progress))
		say(lines, &progress, now);
	else if (lines->since > 0 ||
		lines->is_shown != (registry->process->operation == OPERATION_PAUSED))
		end(lines, registry, now);
}
