/* SPDX-License-Identifier: ISC */
/*
 * The sinks of the log: what is open, and how a line gets there. Nothing here waits, and nothing
 * here is locked: base/log does that.
 */
#ifndef PGUSHER_BASE_LOG_SINKS_H
#define PGUSHER_BASE_LOG_SINKS_H

#include <stdbool.h>

#include "base/log.h"
#include "base/log_line.h"

enum log_sink { LOG_SINK_FILE, LOG_SINK_STDERR, LOG_SINK_SYSLOG, LOG_SINKS };

/*
 * Open what the options name, in place of what was open. False with errno, and all as it was:
 * the file cannot be opened.
 */
bool log_sinks_open(const struct log_options *options);

/* Open the file anew: false with errno, and the old one goes on. True if there is none. */
bool log_sinks_reopen(void);

/* Close file and syslog; stderr stays as it is. */
void log_sinks_close(void);

/* Does the sink want lines of this level? */
bool log_sinks_wants(enum log_sink sink, enum log_level level);

/* Does any sink write facts? */
bool log_sinks_have_facts(void);

/* False: the sink did not take the line now. */
bool log_sinks_write(enum log_sink sink, const struct log_line *line);

/* The path of the file, "" for none. */
const char *log_sinks_path(void);

/* Is there such a facility of syslog? */
bool log_sinks_know_facility(const char *name);

/* Where syslog and the journal listen; NULL: the system's place. */
void log_sinks_set_syslog_path(const char *path);
void log_sinks_set_journal_path(const char *path);

#endif
