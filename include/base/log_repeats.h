/* SPDX-License-Identifier: ISC */
/*
 * Lines that are alike: how many of them are written in a second, and how many were left out.
 *
 * The memory is fixed, whatever peers do: so many kinds of lines about so many peers are told
 * apart, and a kind as a whole may not take more than its share either. Belongs to the log, whose
 * lock is held by who calls.
 */
#ifndef PGUSHER_BASE_LOG_REPEATS_H
#define PGUSHER_BASE_LOG_REPEATS_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/log.h"

enum { LOG_REPEATS_TEXT_SIZE = 192, LOG_REPEATS_WHO_SIZE = 96 };

/* Lines that were left out. */
struct log_left_out {
	enum log_level level;
	unsigned count;
	char who[LOG_REPEATS_WHO_SIZE]; /* whom they are about; "": several */
	char text[LOG_REPEATS_TEXT_SIZE]; /* of the last of them, cut */
};

/* Called for lines that were left out in a second that is over. */
typedef void log_repeats_tell(const struct log_left_out *left_out, void *context);

/*
 * May one more line like this be written, if so many are allowed in a second? If not it is
 * counted, and its text kept for the one who tells. What was left out of the second before is
 * told first.
 */
bool log_repeats_allow(const struct log_likeness *likeness, enum log_level level,
	const char *text, int allowed, usec_t now, log_repeats_tell *tell, void *context);

/* Tell what was left out of seconds that are over at `now`. Costs nothing if nothing was. */
void log_repeats_flush(usec_t now, log_repeats_tell *tell, void *context);

#endif
