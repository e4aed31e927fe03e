/* SPDX-License-Identifier: ISC */
/*
 * Rate limit for similar lines: how many are written per second, and how many were suppressed.
 *
 * Memory is fixed, whatever peers do: a fixed number of (kind, about) pairs is tracked, and
 * each kind has a limit for all its lines as well. Part of the log: the caller holds the log's
 * lock.
 */
#ifndef PGUSHER_BASE_LOG_REPEATS_H
#define PGUSHER_BASE_LOG_REPEATS_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/log.h"

enum { LOG_REPEATS_TEXT_SIZE = 192, LOG_REPEATS_ABOUT_SIZE = 96 };

/* Suppressed lines. */
struct log_left_out {
	enum log_level level;
	unsigned count;
	char about[LOG_REPEATS_ABOUT_SIZE]; /* what they are about; "": several */
	char text[LOG_REPEATS_TEXT_SIZE]; /* of the last of them, cut */
};

/* Callback that reports the suppressed lines of a second that is over. */
typedef void log_repeats_report(const struct log_left_out *left_out, void *context);

/*
 * Returns whether one more similar line may be written, if `allowed` are allowed per second.
 * If not, counts it and keeps its text for the report. Lines suppressed in the previous second
 * are reported through `report` first.
 */
bool log_repeats_allow(const struct log_likeness *likeness, enum log_level level,
	const char *text, int allowed, usec_t now, log_repeats_report *report, void *context);

/* Report lines suppressed in seconds that are over at `now`. Cheap if there are none. */
void log_repeats_flush(usec_t now, log_repeats_report *report, void *context);

#endif
