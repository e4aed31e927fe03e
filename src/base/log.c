/* SPDX-License-Identifier: ISC */
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_line.h"
#include "base/log_repeats.h"
#include "base/log_sinks.h"

enum log_level log_threshold = LEVEL_LOG;
bool log_has_facts;

static struct {
	pthread_mutex_t lock;
	bool configured;
	int repeats; /* similar lines written per second at most */
	uint64_t counts[LEVELS];
	uint64_t lost, left_out;
	uint64_t unreported_losses[LOG_SINKS]; /* lines lost since the sink last took one */
	pid_t pid; /* 0: not read yet, or the process has forked */
} log_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock(void)
{
	(void)pthread_mutex_lock(&log_state.lock);
}

static void unlock(void)
{
	(void)pthread_mutex_unlock(&log_state.lock);
}

static void forget_pid(void)
{
	log_state.pid = 0;
}

/* getpid() is called once, not for each line, and again after a fork (-d). */
static pid_t own_pid(void)
{
	static bool watching_forks;

	if (log_state.pid == 0) {
		log_state.pid = getpid();
		if (!watching_forks)
			watching_forks = pthread_atfork(NULL, NULL, forget_pid) == 0;
	}
	return log_state.pid;
}

/* --- delivery ----------------------------------------------------------------------------- */

static void count_lost(enum log_sink sink)
{
	log_state.unreported_losses[sink]++;
	log_state.lost++;
}

/* Before its next line, a sink gets a line with the number of lines that it lost. */
static bool report_lost(enum log_sink sink, const struct log_line *line)
{
	char text[96];
	const struct log_line notice = {
		.level = LEVEL_WARNING,
		.time = line->time,
		.pid = line->pid,
		.raw = text,
		.text = text,
	};

	(void)snprintf(text, sizeof(text), "log: %llu lines were lost here",
		(unsigned long long)log_state.unreported_losses[sink]);
	if (!log_sinks_write(sink, &notice))
		return false;
	log_state.unreported_losses[sink] = 0;
	return true;
}

static void deliver(enum log_sink sink, const struct log_line *line)
{
	if (!log_sinks_wants(sink, line->level))
		return;
	if ((log_state.unreported_losses[sink] > 0 && !report_lost(sink, line)) ||
		!log_sinks_write(sink, line))
		count_lost(sink);
}

static void deliver_all(
	enum log_level level, const struct log_subject *subject, const char *raw)
{
	char text[LOG_LINE_SIZE];
	const struct log_line line = {
		.level = level,
		.time = clock_wall(),
		.pid = own_pid(),
		.subject = subject,
		.raw = raw,
		.text = text,
	};

	log_line_tidy(text, subject, raw);
	for (enum log_sink sink = 0; sink < LOG_SINKS; sink++)
		deliver(sink, &line);
}

/* Write one line in place of several suppressed ones. */
static void report_left_out(const struct log_left_out *left_out, void *context)
{
	char text[LOG_REPEATS_TEXT_SIZE + LOG_REPEATS_ABOUT_SIZE + 64];

	(void)context;
	(void)snprintf(text, sizeof(text), "%u more like this (%s): %s", left_out->count,
		left_out->about[0] != '\0' ? left_out->about : "several", left_out->text);
	deliver_all(left_out->level, NULL, text);
}

static bool is_within_limit(
	enum log_level level, const struct log_likeness *likeness, const char *raw)
{
	int allowed = log_state.repeats;

	if (!likeness || allowed <= 0)
		return true;
	if (likeness->at_most > 0 && likeness->at_most < allowed)
		allowed = likeness->at_most;
	if (log_repeats_allow(
		    likeness, level, raw, allowed, clock_monotonic(), report_left_out, NULL))
		return true;
	log_state.left_out++;
	return false;
}

__attribute__((format(printf, 4, 0))) static void write_line(enum log_level level,
	const struct log_subject *subject, const struct log_likeness *likeness,
	const char *format, va_list arguments)
{
	const int saved = errno;
	char raw[LOG_LINE_SIZE];

	if (!log_enabled(level) || vsnprintf(raw, sizeof(raw), format, arguments) < 0)
		return;
	lock();
	log_state.counts[level]++;
	if (is_within_limit(level, likeness, raw))
		deliver_all(level, subject, raw);
	unlock();
	errno = saved;
}

void log_write(enum log_level level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line(level, NULL, NULL, format, arguments);
	va_end(arguments);
}

void log_write_about(
	enum log_level level, const struct log_subject *subject, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line(level, subject, NULL, format, arguments);
	va_end(arguments);
}

void log_write_repeated(enum log_level level, const struct log_subject *subject,
	const struct log_likeness *likeness, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	write_line(level, subject, likeness, format, arguments);
	va_end(arguments);
}

void log_report_repeats(void)
{
	lock();
	log_repeats_flush(clock_monotonic(), report_left_out, NULL);
	unlock();
}

/* --- configuration ------------------------------------------------------------------------ */

bool log_configure(const struct log_options *options)
{
	bool opened;
	int error;

	lock();
	opened = log_sinks_open(options);
	error = errno;
	if (opened) {
		log_state.repeats = options->repeats;
		log_state.configured = true;
		log_has_facts = log_sinks_have_facts();
	}
	unlock();
	if (opened)
		log_set_verbose(options->verbose);
	else
		log_write(log_state.configured ? LEVEL_ERROR : LEVEL_FATAL,
			"Cannot open logfile: '%s': %s", options->file, strerror(error));
	return opened;
}

void log_reopen(void)
{
	bool opened;
	int error;

	lock();
	opened = log_sinks_reopen();
	error = errno;
	unlock();
	if (!opened)
		log_write(LEVEL_ERROR, "Cannot open logfile: '%s': %s", log_sinks_path(),
			strerror(error));
}

void log_close(void)
{
	lock();
	log_repeats_flush(INT64_MAX, report_left_out, NULL);
	log_sinks_close();
	log_state.configured = false;
	unlock();
}

void log_set_verbose(int verbose)
{
	if (verbose <= 0)
		log_threshold = LEVEL_LOG;
	else
		log_threshold = verbose == 1 ? LEVEL_DEBUG : LEVEL_NOISE;
}

/* --- counters ----------------------------------------------------------------------------- */

static uint64_t number_of(const uint64_t *counter)
{
	uint64_t number;

	lock();
	number = *counter;
	unlock();
	return number;
}

uint64_t log_count(enum log_level level)
{
	return number_of(&log_state.counts[level]);
}

uint64_t log_lost(void)
{
	return number_of(&log_state.lost);
}

uint64_t log_left_out(void)
{
	return number_of(&log_state.left_out);
}

const char *log_level_name(enum log_level level)
{
	return log_line_level(level);
}

void log_set_syslog_path(const char *path)
{
	log_sinks_set_syslog_path(path);
}

void log_set_journal_path(const char *path)
{
	log_sinks_set_journal_path(path);
}
