/* SPDX-License-Identifier: ISC */
/*
 * Lines to file, stderr and syslog, none of which may hold us up.
 *
 * The file is opened non-blocking, which matters when its name is that of a pipe; what is
 * opened here is our own. Stderr is shared with whoever started us, so its flags are not ours
 * to change: it is asked for room first. For syslog the datagram is sent here, since syslog(3)
 * waits.
 */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

enum {
	PATH_SIZE = 4096,
	IDENT_SIZE = 64,
	/* In front of the text: time, zone, process id and level, or what syslog wants. */
	HEAD_SIZE = 256,
};

enum log_level log_threshold = LEVEL_LOG;

static const char *const level_names[] = {
	[LEVEL_FATAL] = "FATAL",
	[LEVEL_ERROR] = "ERROR",
	[LEVEL_WARNING] = "WARNING",
	[LEVEL_LOG] = "LOG",
	[LEVEL_DEBUG] = "DEBUG",
	[LEVEL_NOISE] = "NOISE",
};

static const int syslog_priorities[] = {
	[LEVEL_FATAL] = LOG_CRIT,
	[LEVEL_ERROR] = LOG_ERR,
	[LEVEL_WARNING] = LOG_WARNING,
	[LEVEL_LOG] = LOG_INFO,
	/* Never sent, see wants(). */
	[LEVEL_DEBUG] = LOG_DEBUG,
	[LEVEL_NOISE] = LOG_DEBUG,
};

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

/* One line on its way: what it says and, for those sinks that want it, when and who. */
struct line {
	enum log_level level;
	usec_t time;
	const char *text;
};

struct sink {
	/* False: the sink did not take the line now. */
	bool (*write)(const struct line *line);
	bool enabled;
	uint64_t untold; /* lines lost since the sink last took one */
};

static bool write_to_file(const struct line *line);
static bool write_to_stderr(const struct line *line);
static bool write_to_syslog(const struct line *line);

static struct {
	pthread_mutex_t lock;
	bool configured;
	uint64_t lost;

	struct sink file, error, syslog;

	char path[PATH_SIZE];
	int descriptor; /* of the file */

	char ident[IDENT_SIZE];
	int facility;
	const char *syslog_path; /* NULL: the system's */
	int socket; /* connected to syslog, or -1 */

	pid_t pid; /* 0: not asked yet, or forked since */

	/* What the time of a line is written from, the same for a whole second. */
	time_t second;
	struct tm local;
} log_state = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.file = {.write = write_to_file},
	.error = {.write = write_to_stderr, .enabled = true},
	.syslog = {.write = write_to_syslog},
	.descriptor = -1,
	.facility = LOG_DAEMON,
	.socket = -1,
	.second = -1,
};

static void forget_pid(void)
{
	log_state.pid = 0;
}

/* Asked once and not for each line; -d forks later. */
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

static const struct tm *local_time(usec_t time)
{
	time_t second = (time_t)(time / USEC_PER_SEC);

	if (second != log_state.second && localtime_r(&second, &log_state.local) != NULL)
		log_state.second = second;
	return &log_state.local;
}

/* What file and stderr get; false when the descriptor did not take all of it at once. */
static bool write_line(int descriptor, const struct line *line)
{
	char whole[HEAD_SIZE + LOG_LINE_SIZE];
	const struct tm *local = local_time(line->time);
	ssize_t written;
	int length;

	length = snprintf(whole, sizeof(whole),
		"%04d-%02d-%02d %02d:%02d:%02d.%03d %s [%d] %s %s\n", local->tm_year + 1900,
		local->tm_mon + 1, local->tm_mday, local->tm_hour, local->tm_min, local->tm_sec,
		(int)(line->time % USEC_PER_SEC / USEC_PER_MSEC), local->tm_zone,
		(int)own_pid(), level_names[line->level], line->text);
	if (length < 0 || (size_t)length >= sizeof(whole))
		return false;
	do
		written = write(descriptor, whole, (size_t)length);
	while (written < 0 && errno == EINTR);
	return written == length;
}

static bool write_to_file(const struct line *line)
{
	return write_line(log_state.descriptor, line);
}

static bool write_to_stderr(const struct line *line)
{
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};

	/* A pipe that is ready takes PIPE_BUF bytes without waiting, and lines are shorter. */
	if (poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0)
		return false;
	return write_line(STDERR_FILENO, line);
}

static bool connect_to_syslog(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = log_state.syslog_path;

	if (log_state.socket >= 0)
		return true;
	if (!text_copy(address.sun_path, sizeof(address.sun_path),
		    path != NULL ? path : _PATH_LOG))
		return false;
	log_state.socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (log_state.socket < 0)
		return false;
	if (connect(log_state.socket, (struct sockaddr *)&address, sizeof(address)) == 0)
		return true;
	(void)close(log_state.socket);
	log_state.socket = -1;
	return false;
}

static void disconnect_from_syslog(void)
{
	if (log_state.socket >= 0)
		(void)close(log_state.socket);
	log_state.socket = -1;
}

static bool send_to_syslog(const char *datagram, size_t length)
{
	return connect_to_syslog() &&
		send(log_state.socket, datagram, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* The form that syslog(3) sends to the local daemon, after RFC 3164. */
static bool write_to_syslog(const struct line *line)
{
	static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
		"Aug", "Sep", "Oct", "Nov", "Dec"};
	char whole[HEAD_SIZE + LOG_LINE_SIZE];
	const struct tm *local = local_time(line->time);
	int length;

	length = snprintf(whole, sizeof(whole), "<%d>%s %2d %02d:%02d:%02d %s[%d]: %s",
		log_state.facility | syslog_priorities[line->level], months[local->tm_mon % 12],
		local->tm_mday, local->tm_hour, local->tm_min, local->tm_sec, log_state.ident,
		(int)own_pid(), line->text);
	if (length < 0 || (size_t)length >= sizeof(whole))
		return false;
	if (send_to_syslog(whole, (size_t)length))
		return true;
	if (errno == EAGAIN || errno == ENOBUFS)
		return false;
	/* The daemon was started anew since: its socket is another one. */
	disconnect_from_syslog();
	return send_to_syslog(whole, (size_t)length);
}

static void lose(struct sink *sink)
{
	sink->untold++;
	log_state.lost++;
}

static void deliver(struct sink *sink, const struct line *line)
{
	char text[96];
	struct line notice = {.level = LEVEL_WARNING, .time = line->time, .text = text};

	if (!sink->enabled)
		return;
	if (sink->untold > 0) {
		(void)snprintf(text, sizeof(text), "log: %llu lines were lost here",
			(unsigned long long)sink->untold);
		if (!sink->write(&notice)) {
			lose(sink);
			return;
		}
		sink->untold = 0;
	}
	if (!sink->write(line))
		lose(sink);
}

/* Copy a text so that no byte of it can pass for another line or for a terminal's command. */
static void tidy(char *out, size_t size, const char *in)
{
	size_t length = strlen(in);
	char *end = out + size - 1;

	while (length > 0 && strchr(" \t\r\n\f\v", in[length - 1]) != NULL)
		length--;
	for (const char *last = in + length; in < last; in++) {
		unsigned char byte = (unsigned char)*in;

		if (byte == '\n') {
			if (end - out < 2)
				break;
			*out++ = '\n';
			*out++ = '\t';
		} else if ((byte < ' ' && byte != '\t') || byte == 0x7f) {
			if (end - out < 4)
				break;
			memcpy(out, "\\x", 2);
			text_hex(out + 2, 3, in, 1);
			out += 4;
		} else {
			if (end - out < 1)
				break;
			*out++ = *in;
		}
	}
	*out = '\0';
}

static void write_text(enum log_level level, const char *raw)
{
	char text[LOG_LINE_SIZE];
	struct line line = {.level = level, .time = clock_wall(), .text = text};

	tidy(text, sizeof(text), raw);
	(void)pthread_mutex_lock(&log_state.lock);
	deliver(&log_state.file, &line);
	deliver(&log_state.error, &line);
	if (level <= LEVEL_LOG)
		deliver(&log_state.syslog, &line);
	(void)pthread_mutex_unlock(&log_state.lock);
}

void log_writev(enum log_level level, const char *format, va_list arguments)
{
	int saved = errno;
	char raw[LOG_LINE_SIZE];

	if (!log_enabled(level))
		return;
	if (vsnprintf(raw, sizeof(raw), format, arguments) >= 0)
		write_text(level, raw);
	errno = saved;
}

void log_write(enum log_level level, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	log_writev(level, format, arguments);
	va_end(arguments);
}

static int open_file(const char *path)
{
	return open(
		path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
}

static void set_file(int descriptor)
{
	if (log_state.descriptor >= 0)
		(void)close(log_state.descriptor);
	log_state.descriptor = descriptor;
	log_state.file.enabled = descriptor >= 0;
}

static int facility_of(const char *name)
{
	for (size_t i = 0; name != NULL && i < sizeof(facilities) / sizeof(facilities[0]);
		i++) {
		if (strcmp(name, facilities[i].name) == 0)
			return facilities[i].code;
	}
	return LOG_DAEMON;
}

bool log_configure(const struct log_options *options)
{
	bool has_file = options->file != NULL && options->file[0] != '\0';
	bool has_ident = options->syslog_ident != NULL && options->syslog_ident[0] != '\0';
	int descriptor = has_file ? open_file(options->file) : -1;

	if (has_file && descriptor < 0) {
		log_write(log_state.configured ? LEVEL_ERROR : LEVEL_FATAL,
			"Cannot open logfile: '%s': %s", options->file, strerror(errno));
		return false;
	}

	(void)pthread_mutex_lock(&log_state.lock);
	set_file(descriptor);
	(void)text_copy(log_state.path, sizeof(log_state.path), has_file ? options->file : "");
	log_state.error.enabled = options->to_stderr;
	log_state.syslog.enabled = options->to_syslog;
	(void)text_copy(log_state.ident, sizeof(log_state.ident),
		has_ident ? options->syslog_ident : "pgbouncer");
	log_state.facility = facility_of(options->syslog_facility);
	disconnect_from_syslog();
	log_state.configured = true;
	(void)pthread_mutex_unlock(&log_state.lock);

	log_set_verbose(options->verbose);
	return true;
}

void log_reopen(void)
{
	int descriptor;

	if (!log_state.file.enabled)
		return;
	descriptor = open_file(log_state.path);
	if (descriptor < 0) {
		log_write(LEVEL_ERROR, "Cannot open logfile: '%s': %s", log_state.path,
			strerror(errno));
		return;
	}
	(void)pthread_mutex_lock(&log_state.lock);
	set_file(descriptor);
	(void)pthread_mutex_unlock(&log_state.lock);
}

void log_close(void)
{
	(void)pthread_mutex_lock(&log_state.lock);
	set_file(-1);
	log_state.syslog.enabled = false;
	disconnect_from_syslog();
	log_state.configured = false;
	(void)pthread_mutex_unlock(&log_state.lock);
}

void log_set_verbose(int verbose)
{
	if (verbose <= 0)
		log_threshold = LEVEL_LOG;
	else
		log_threshold = verbose == 1 ? LEVEL_DEBUG : LEVEL_NOISE;
}

uint64_t log_lost(void)
{
	uint64_t lost;

	(void)pthread_mutex_lock(&log_state.lock);
	lost = log_state.lost;
	(void)pthread_mutex_unlock(&log_state.lock);
	return lost;
}

const char *log_level_name(enum log_level level)
{
	return level_names[level];
}

void log_set_syslog_path(const char *path)
{
	log_state.syslog_path = path;
}
