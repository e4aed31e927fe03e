/* SPDX-License-Identifier: ISC */
/*
 * The log file is opened non-blocking, since its path may name a pipe. Stderr is shared with
 * the process that started this one, so its flags must not be changed: where possible stderr
 * is opened again with a description of our own, otherwise poll() checks for room before each
 * write. Datagrams for syslog and the journal are sent here, since syslog(3) blocks.
 */
#include "base/log_sinks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "base/log_socket.h"
#include "base/text.h"

enum { PATH_SIZE = 4096, IDENT_SIZE = 64 };

struct facility {
	const char *name;
	int code;
};

static const struct facility facilities[] = {
	{"auth", LOG_AUTH},
	{"authpriv", LOG_AUTHPRIV},
	{"daemon", LOG_DAEMON},
	{"user", LOG_USER},
	{"local0", LOG_LOCAL0},
	{"local1", LOG_LOCAL1},
	{"local2", LOG_LOCAL2},
	{"local3", LOG_LOCAL3},
	{"local4", LOG_LOCAL4},
	{"local5", LOG_LOCAL5},
	{"local6", LOG_LOCAL6},
	{"local7", LOG_LOCAL7},
};

/* A descriptor to which lines are appended. */
struct output {
	int descriptor;
	bool torn; /* the last write took only part of a line */
};

static struct {
	bool to_stderr, to_syslog;
	bool to_journal; /* stderr is connected to the journal */
	log_line_shape *shape; /* format of lines in file and stderr */
	char path[PATH_SIZE];
	struct output file;
	struct output error; /* our own description of stderr, or stderr itself */
	char ident[IDENT_SIZE];
	int facility;
	struct log_socket syslog, journal;
} sinks = {
	.to_stderr = true,
	.shape = log_line_text,
	.file = {.descriptor = -1},
	.error = {.descriptor = STDERR_FILENO},
	.facility = LOG_DAEMON,
	.syslog = {.place = LOG_SOCKET_SYSLOG, .descriptor = -1},
	.journal = {.place = LOG_SOCKET_JOURNAL, .descriptor = -1},
};

/* --- writing ------------------------------------------------------------------------------ */

/* Returns false if the descriptor did not take the whole line at once. */
static bool write_line(struct output *output, const struct log_line *line)
{
	char room[1 + LOG_WHOLE_SIZE];
	char *whole = room + 1;
	size_t length = sinks.shape(line, whole);
	ssize_t written;

	if (output->torn) {
		*--whole = '\n'; /* ends the partial line */
		length++;
	}
	do
		written = write(output->descriptor, whole, length);
	while (written < 0 && errno == EINTR);
	if (written > 0)
		output->torn = (size_t)written < length;
	return written >= 0 && (size_t)written == length;
}

static bool write_to_stderr(const struct log_line *line)
{
	struct pollfd room = {.fd = sinks.error.descriptor, .events = POLLOUT};

	/*
	 * A pipe that is ready takes PIPE_BUF bytes without blocking, and lines are no longer.
	 */
	if (poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0)
		return false;
	return write_line(&sinks.error, line);
}

static bool write_to_journal(const struct log_line *line)
{
	char whole[LOG_WHOLE_SIZE];
	const size_t length = log_line_journal(line, sinks.ident, whole);

	return log_socket_send(&sinks.journal, whole, length);
}

static bool write_to_syslog(const struct log_line *line)
{
	char whole[LOG_WHOLE_SIZE], object[LOG_WHOLE_SIZE];
	const char *text = line->text;
	size_t length = strlen(text);

	if (sinks.shape == log_line_json) {
		length = log_line_json(line, object) - strlen("\n");
		text = object;
	}
	length = log_line_syslog(line, sinks.facility, sinks.ident, text, length, whole);
	return log_socket_send(&sinks.syslog, whole, length);
}

bool log_sinks_wants(enum log_sink sink, enum log_level level)
{
	switch (sink) {
	case LOG_SINK_FILE:
		return sinks.file.descriptor >= 0;
	case LOG_SINK_STDERR:
		return sinks.to_stderr;
	case LOG_SINK_SYSLOG:
		return sinks.to_syslog && level <= LEVEL_LOG;
	case LOG_SINKS:
		break;
	}
	return false;
}

bool log_sinks_have_facts(void)
{
	return sinks.shape == log_line_json || sinks.to_journal;
}

bool log_sinks_write(enum log_sink sink, const struct log_line *line)
{
	switch (sink) {
	case LOG_SINK_FILE:
		return write_line(&sinks.file, line);
	case LOG_SINK_STDERR:
		return sinks.to_journal ? write_to_journal(line) : write_to_stderr(line);
	case LOG_SINK_SYSLOG:
		return write_to_syslog(line);
	case LOG_SINKS:
		break;
	}
	return false;
}

/* --- opening ------------------------------------------------------------------------------ */

static int open_file(const char *path)
{
	return open(
		path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
}

static void set_file(int descriptor)
{
	if (sinks.file.descriptor >= 0)
		(void)close(sinks.file.descriptor);
	sinks.file = (struct output){.descriptor = descriptor};
}

/*
 * Another writer may fill a shared pipe between poll() and write(). So open the pipe or
 * terminal again: the new description is ours and can be non-blocking.
 */
static void open_again(const struct stat *status)
{
	int descriptor;

	if (!S_ISFIFO(status->st_mode) && !isatty(STDERR_FILENO))
		return;
	descriptor = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (descriptor >= 0)
		sinks.error.descriptor = descriptor;
}

/*
 * systemd.exec(5): JOURNAL_STREAM identifies the descriptor that is connected to the journal.
 */
static bool is_journal(const struct stat *status)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];

	(void)snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)status->st_dev,
		(unsigned long long)status->st_ino);
	return stream && strcmp(stream, own) == 0;
}

static void set_stderr(bool enabled)
{
	struct stat status;

	if (sinks.error.descriptor != STDERR_FILENO)
		(void)close(sinks.error.descriptor);
	sinks.error = (struct output){.descriptor = STDERR_FILENO};
	log_socket_close(&sinks.journal);
	sinks.to_stderr = enabled;
	sinks.to_journal = false;
	if (!enabled || fstat(STDERR_FILENO, &status) != 0)
		return;
	sinks.to_journal = is_journal(&status) && log_socket_open(&sinks.journal);
	if (!sinks.to_journal)
		open_again(&status);
}

/* Returns NULL if there is no facility of this name. */
static const struct facility *find_facility(const char *name)
{
	for (size_t i = 0; name != NULL && i < sizeof(facilities) / sizeof(facilities[0]);
		i++) {
		if (strcmp(name, facilities[i].name) == 0)
			return &facilities[i];
	}
	return NULL;
}

static int facility_of(const char *name)
{
	const struct facility *found = find_facility(name);

	return found ? found->code : LOG_DAEMON;
}

bool log_sinks_know_facility(const char *name)
{
	return find_facility(name) != NULL;
}

static void set_syslog(const struct log_options *options)
{
	const bool has_ident = options->syslog_ident && options->syslog_ident[0] != '\0';

	sinks.to_syslog = options->to_syslog;
	(void)text_copy(sinks.ident, sizeof(sinks.ident),
		has_ident ? options->syslog_ident : "pgbouncer");
	sinks.facility = facility_of(options->syslog_facility);
	log_socket_close(&sinks.syslog);
}

bool log_sinks_open(const struct log_options *options)
{
	const bool has_file = options->file != NULL && options->file[0] != '\0';
	const int descriptor = has_file ? open_file(options->file) : -1;

	if (has_file && descriptor < 0)
		return false;
	set_file(descriptor);
	(void)text_copy(sinks.path, sizeof(sinks.path), has_file ? options->file : "");
	set_syslog(options);
	set_stderr(options->to_stderr);
	sinks.shape = options->format == LOG_FORMAT_JSON ? log_line_json : log_line_text;
	return true;
}

bool log_sinks_reopen(void)
{
	int descriptor;

	if (sinks.file.descriptor < 0)
		return true;
	descriptor = open_file(sinks.path);
	if (descriptor < 0)
		return false;
	set_file(descriptor);
	return true;
}

void log_sinks_close(void)
{
	set_file(-1);
	sinks.to_syslog = false;
	log_socket_close(&sinks.syslog);
}

const char *log_sinks_path(void)
{
	return sinks.path;
}

void log_sinks_set_syslog_path(const char *path)
{
	sinks.syslog.place = path ? path : LOG_SOCKET_SYSLOG;
}

void log_sinks_set_journal_path(const char *path)
{
	sinks.journal.place = path ? path : LOG_SOCKET_JOURNAL;
}
