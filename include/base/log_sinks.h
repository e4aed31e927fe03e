/* SPDX-License-Identifier: ISC */
/*
 * The sinks of the log: which are open, and writing to them. Never blocks, except where the
 * kernel waits for the disk of the file. Takes no lock: base/log holds it.
 */
#ifndef PGUSHER_BASE_LOG_SINKS_H
#define PGUSHER_BASE_LOG_SINKS_H

#include <stdbool.h>

#include "base/log.h"
#include "base/log_line.h"

enum log_sink { LOG_SINK_FILE, LOG_SINK_STDERR, LOG_SINK_SYSLOG, LOG_SINKS };

/*
 * Open the sinks that the options name, and close the former ones. If the file cannot be
 * opened, returns false with errno set and changes nothing.
 */
bool log_sinks_open(const struct log_options *options);

/*
 * Open the file again. Returns false with errno set if that fails; the old file stays in use.
 * Returns true if there is no file.
 */
bool log_sinks_reopen(void);

/* Close file and syslog; stderr stays as it is. */
void log_sinks_close(void);

/* Whether the sink takes lines of this level. */
bool log_sinks_wants(enum log_sink sink, enum log_level level);

/* Whether any sink writes facts. */
bool log_sinks_have_facts(void);

/* Write a line. Returns false if the sink could not take it without blocking, or failed. */
bool log_sinks_write(enum log_sink sink, const struct log_line *line);

/* The path of the file, "" if there is none. Static memory. */
const char *log_sinks_path(void);

/* Whether syslog has a facility of this name. */
bool log_sinks_know_facility(const char *name);

/* Paths of the sockets of syslog and the journal; NULL restores the system's. Not copied. */
void log_sinks_set_syslog_path(const char *path);
void log_sinks_set_journal_path(const char *path);

#endif
