/* SPDX-License-Identifier: ISC */
/* Lines have PgBouncer's shape, go to the configured sinks, and writing never blocks. */
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"

static char directory[] = "/tmp/test_log_XXXXXX";
static char log_path[64], other_path[64], socket_path[64];

/* The real stderr, and the pipe that replaces it during a test. */
static int real_stderr = -1;
static int pipe_ends[2];

static char content[256 * 1024];

static int make_directory(void **state)
{
	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	if (mkdtemp(directory) == NULL)
		return -1;
	(void)snprintf(log_path, sizeof(log_path), "%s/log", directory);
	(void)snprintf(other_path, sizeof(other_path), "%s/other", directory);
	(void)snprintf(socket_path, sizeof(socket_path), "%s/syslog", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	(void)unlink(log_path);
	(void)unlink(other_path);
	(void)unlink(socket_path);
	return rmdir(directory);
}

static int redirect_stderr(void **state)
{
	(void)state;
	if (pipe(pipe_ends) != 0)
		return -1;
	real_stderr = dup(STDERR_FILENO);
	(void)fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
	return dup2(pipe_ends[1], STDERR_FILENO) < 0 ? -1 : 0;
}

static int restore_stderr(void **state)
{
	const struct log_options quiet = {0};

	(void)state;
	log_close();
	(void)log_configure(&quiet);
	log_close();
	log_set_syslog_path(NULL);
	log_set_journal_path(NULL);
	(void)unsetenv("JOURNAL_STREAM");
	(void)dup2(real_stderr, STDERR_FILENO);
	(void)close(real_stderr);
	(void)close(pipe_ends[0]);
	(void)close(pipe_ends[1]);
	(void)unlink(log_path);
	(void)unlink(other_path);
	(void)unlink(socket_path);
	return 0;
}

static const char *read_all(int descriptor)
{
	size_t length = 0;
	ssize_t some;

	while ((some = read(descriptor, content + length, sizeof(content) - 1 - length)) > 0)
		length += (size_t)some;
	content[length] = '\0';
	return content;
}

static const char *read_file(const char *path)
{
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(descriptor >= 0);
	(void)read_all(descriptor);
	(void)close(descriptor);
	return content;
}

static void configure_file(const char *path)
{
	const struct log_options options = {.file = path};

	assert_true(log_configure(&options));
}

static void configure_stderr(void)
{
	const struct log_options options = {.to_stderr = true};

	assert_true(log_configure(&options));
}

static void assert_matches(const char *text, const char *pattern)
{
	regex_t shape;
	int result;

	assert_int_equal(regcomp(&shape, pattern, REG_EXTENDED | REG_NOSUB), 0);
	result = regexec(&shape, text, 0, NULL, 0);
	regfree(&shape);
	if (result != 0)
		fail_msg("\"%s\" does not match %s", text, pattern);
}

/* The part of a line after time, zone and process id. */
static const char *text_of(const char *line)
{
	const char *text = strstr(line, "] ");

	assert_non_null(text);
	return text + 2;
}

static void test_line_has_time_zone_process_level_and_text(void **state)
{
	char pattern[256];

	(void)state;
	configure_file(log_path);
	log_write(LEVEL_LOG, "C-0x1: %s/%s@%s closing", "app", "alice", "127.0.0.1:5000");
	(void)snprintf(pattern, sizeof(pattern),
		"^20[0-9]{2}-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]:[0-6][0-9][.][0-9]{3} "
		"[A-Z0-9+-]{3,6} \\[%d\\] LOG C-0x1: app/alice@127.0.0.1:5000 closing\n$",
		(int)getpid());
	assert_matches(read_file(log_path), pattern);
}

static void test_line_is_in_local_time(void **state)
{
	(void)state;
	(void)setenv("TZ", "XYZ-05:30", 1);
	tzset();
	configure_file(log_path);
	log_write(LEVEL_LOG, "text");
	assert_matches(read_file(log_path), "[.][0-9]{3} XYZ \\[");
	(void)unsetenv("TZ");
	tzset();
}

static void test_every_level_has_its_name(void **state)
{
	const struct log_options options = {.file = log_path, .verbose = 2};

	(void)state;
	assert_true(log_configure(&options));
	for (int level = LEVEL_FATAL; level <= LEVEL_NOISE; level++)
		log_write((enum log_level)level, "x");
	(void)read_file(log_path);
	assert_matches(
		content, "FATAL x\n.*ERROR x\n.*WARNING x\n.*LOG x\n.*DEBUG x\n.*NOISE x\n");
}

static void test_verbosity_selects_the_levels_written(void **state)
{
	(void)state;
	configure_file(log_path);
	assert_true(log_enabled(LEVEL_LOG));
	assert_false(log_enabled(LEVEL_DEBUG));
	log_write(LEVEL_DEBUG, "unseen");
	log_set_verbose(1);
	assert_false(log_enabled(LEVEL_NOISE));
	log_write(LEVEL_DEBUG, "seen debug");
	log_write(LEVEL_NOISE, "unseen");
	log_set_verbose(5);
	log_write(LEVEL_NOISE, "seen noise");
	log_set_verbose(-1);
	log_write(LEVEL_DEBUG, "unseen");
	(void)read_file(log_path);
	assert_matches(content, "seen debug\n.*seen noise\n$");
	assert_null(strstr(content, "unseen"));
}

static void test_newline_is_followed_by_a_tab_and_trailing_space_cut(void **state)
{
	(void)state;
	configure_file(log_path);
	log_write(LEVEL_LOG, "one\n\ntwo \r\n\t \n");
	assert_string_equal(text_of(read_file(log_path)), "LOG one\n\t\n\ttwo\n");
}

static void test_control_bytes_are_escaped(void **state)
{
	(void)state;
	configure_file(log_path);
	log_write(LEVEL_LOG, "a\tb\rc\x1b[2J\x07\x7f J\xc3\xb6rg");
	assert_string_equal(
		text_of(read_file(log_path)), "LOG a\tb\\x0dc\\x1b[2J\\x07\\x7f J\xc3\xb6rg\n");
}

static void test_long_line_is_cut(void **state)
{
	static char long_text[100000];

	(void)state;
	memset(long_text, 'x', sizeof(long_text) - 1);
	configure_file(log_path);
	log_write(LEVEL_LOG, "%s", long_text);
	assert_in_range(strlen(read_file(log_path)), 1900, 2200);
	/* Escapes make a text longer, but not beyond the same limit. */
	(void)unlink(log_path);
	memset(long_text, '\x01', sizeof(long_text) - 1);
	configure_file(log_path);
	log_write(LEVEL_LOG, "%s", long_text);
	assert_in_range(strlen(read_file(log_path)), 1900, 2200);
	assert_matches(content, "x01\n$");
}

static void test_errno_is_preserved(void **state)
{
	(void)state;
	configure_file(log_path);
	errno = EDOM;
	log_write(LEVEL_LOG, "text");
	assert_int_equal(errno, EDOM);
}

static void test_file_and_stderr_get_the_same_lines(void **state)
{
	const struct log_options options = {.file = log_path, .to_stderr = true};
	char *in_file;

	(void)state;
	assert_true(log_configure(&options));
	log_write(LEVEL_WARNING, "both");
	in_file = strdup(read_file(log_path));
	assert_string_equal(read_all(pipe_ends[0]), in_file);
	assert_matches(in_file, "WARNING both\n$");
	free(in_file);
}

static void test_reopen_follows_a_rotation(void **state)
{
	(void)state;
	configure_file(log_path);
	log_write(LEVEL_LOG, "first");
	assert_int_equal(rename(log_path, other_path), 0);
	log_write(LEVEL_LOG, "second");
	log_reopen();
	log_write(LEVEL_LOG, "third");
	assert_matches(read_file(other_path), "first\n.*second\n$");
	assert_matches(read_file(log_path), "^[^\n]*third\n$");
}

static void test_file_is_appended_to(void **state)
{
	(void)state;
	configure_file(log_path);
	log_write(LEVEL_LOG, "first");
	configure_file(log_path);
	log_write(LEVEL_LOG, "second");
	assert_matches(read_file(log_path), "first\n.*second\n$");
}

static void test_failure_to_open_the_first_file_is_logged_as_fatal(void **state)
{
	const struct log_options start = {.to_stderr = true};
	const struct log_options options = {.file = "/nonexistent/directory/log"};

	(void)state;
	/* Before the first configuration lines go to stderr, as at the start of the process. */
	assert_true(log_configure(&start));
	log_close();
	assert_false(log_configure(&options));
	assert_string_equal(text_of(read_all(pipe_ends[0])),
		"FATAL Cannot open logfile: '/nonexistent/directory/log': "
		"No such file or directory\n");
}

static void test_failure_to_open_a_later_file_keeps_the_old_one(void **state)
{
	const struct log_options options = {.file = "/nonexistent/directory/log"};

	(void)state;
	configure_file(log_path);
	assert_false(log_configure(&options));
	log_write(LEVEL_LOG, "still here");
	assert_matches(
		read_file(log_path), "ERROR Cannot open logfile: .*\n.*LOG still here\n$");
}

static void test_removed_directory_loses_no_line(void **state)
{
	char subdirectory[64], path[80];

	(void)state;
	(void)snprintf(subdirectory, sizeof(subdirectory), "%s/sub", directory);
	(void)snprintf(path, sizeof(path), "%s/log", subdirectory);
	assert_int_equal(mkdir(subdirectory, 0700), 0);
	configure_file(path);
	assert_int_equal(rename(path, log_path), 0);
	assert_int_equal(rmdir(subdirectory), 0);
	log_reopen();
	log_write(LEVEL_LOG, "still here");
	assert_matches(
		read_file(log_path), "ERROR Cannot open logfile: .*\n.*LOG still here\n$");
}

static void fill_pipe(int descriptor)
{
	static const char block[4096];
	int flags = fcntl(descriptor, F_GETFL);

	(void)fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
	while (write(descriptor, block, sizeof(block)) > 0)
		;
	(void)fcntl(descriptor, F_SETFL, flags);
}

static void test_full_stderr_pipe_loses_lines_and_counts_them(void **state)
{
	uint64_t before = log_lost();

	(void)state;
	configure_stderr();
	fill_pipe(STDERR_FILENO);
	/* A process that blocked here would block for ever. */
	(void)alarm(20);
	for (int i = 0; i < 100; i++)
		log_write(LEVEL_LOG, "not read");
	(void)alarm(0);
	assert_int_equal(log_lost() - before, 100);
	/* Stderr is shared: its flags must not be changed. */
	assert_int_equal(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);

	(void)read_all(pipe_ends[0]);
	log_write(LEVEL_LOG, "read again");
	assert_matches(read_all(pipe_ends[0]),
		"^[^\n]*WARNING log: 100 lines were lost here\n[^\n]*LOG read again\n$");
	log_write(LEVEL_LOG, "and on");
	assert_matches(read_all(pipe_ends[0]), "^[^\n]*LOG and on\n$");
	assert_int_equal(log_lost() - before, 100);
}

static void test_closed_stderr_pipe_loses_lines_and_counts_them(void **state)
{
	uint64_t before = log_lost();

	(void)state;
	configure_stderr();
	(void)close(pipe_ends[0]);
	log_write(LEVEL_LOG, "no reader");
	assert_int_equal(log_lost() - before, 1);
}

static void test_full_named_pipe_as_file_loses_lines_and_counts_them(void **state)
{
	uint64_t before;
	int reader;

	(void)state;
	assert_int_equal(mkfifo(log_path, 0600), 0);
	reader = open(log_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	configure_file(log_path);
	before = log_lost();
	(void)alarm(20);
	for (int i = 0; i < 5000; i++)
		log_write(LEVEL_LOG, "not read yet");
	(void)alarm(0);
	assert_in_range(log_lost() - before, 1, 4999);
	(void)read_all(reader);
	log_write(LEVEL_LOG, "read again");
	assert_matches(read_all(reader), "lines were lost here\n[^\n]*LOG read again\n$");
	(void)close(reader);
}

static void test_full_disk_loses_lines_and_counts_them(void **state)
{
	uint64_t before = log_lost();

	(void)state;
	if (access("/dev/full", W_OK) != 0)
		skip();
	configure_file("/dev/full");
	log_write(LEVEL_LOG, "no room");
	log_write(LEVEL_LOG, "no room");
	assert_int_equal(log_lost() - before, 2);
}

static int listen_as_syslog(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	(void)unlink(socket_path);
	memcpy(address.sun_path, socket_path, strlen(socket_path) + 1);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	log_set_syslog_path(socket_path);
	return listener;
}

static void test_syslog_gets_priority_ident_and_bare_text(void **state)
{
	const struct log_options options = {.to_syslog = true,
		.syslog_ident = "pooler",
		.syslog_facility = "local3",
		.verbose = 2};
	int listener = listen_as_syslog();
	char pattern[256];

	(void)state;
	assert_true(log_configure(&options));
	log_write(LEVEL_WARNING, "C-0x1: text");
	(void)snprintf(pattern, sizeof(pattern),
		"^<156>[A-Z][a-z]{2} [ 1-3][0-9] [0-9:]{8} pooler\\[%d\\]: C-0x1: text$",
		(int)getpid());
	assert_matches(read_all(listener), pattern);
	/* DEBUG and NOISE are not sent to syslog. */
	log_write(LEVEL_DEBUG, "unseen");
	log_write(LEVEL_NOISE, "unseen");
	assert_string_equal(read_all(listener), "");
	(void)close(listener);
}

static void test_syslog_priorities_follow_the_level(void **state)
{
	const struct log_options options = {
		.to_syslog = true, .syslog_facility = "no such facility"};
	static const char *const starts[] = {"^<26>", "^<27>", "^<28>", "^<30>"};
	int listener = listen_as_syslog();

	(void)state;
	assert_true(log_configure(&options));
	for (int level = LEVEL_FATAL; level <= LEVEL_LOG; level++) {
		log_write((enum log_level)level, "text");
		assert_matches(read_all(listener), starts[level]);
		assert_non_null(strstr(content, " pgbouncer["));
	}
	(void)close(listener);
}

static void test_blocked_syslog_loses_lines_and_counts_them(void **state)
{
	const struct log_options options = {.to_syslog = true};
	int listener = listen_as_syslog();
	uint64_t before;

	(void)state;
	assert_true(log_configure(&options));
	before = log_lost();
	(void)alarm(20);
	for (int i = 0; i < 20000; i++)
		log_write(LEVEL_LOG, "not read yet");
	(void)alarm(0);
	assert_in_range(log_lost() - before, 1, 19999);
	(void)read_all(listener);
	log_write(LEVEL_LOG, "read again");
	assert_matches(read_all(listener), "lines were lost here<[^<]*: read again$");
	(void)close(listener);
}

static void test_restarted_syslog_is_found(void **state)
{
	const struct log_options options = {.to_syslog = true};
	int listener = listen_as_syslog();
	uint64_t before;

	(void)state;
	assert_true(log_configure(&options));
	log_write(LEVEL_LOG, "first");
	(void)close(listener);
	listener = listen_as_syslog();
	before = log_lost();
	log_write(LEVEL_LOG, "second");
	assert_int_equal(log_lost(), before);
	assert_matches(read_all(listener), ": second$");
	(void)close(listener);
	(void)unlink(socket_path);
	log_write(LEVEL_LOG, "lost");
	assert_int_equal(log_lost(), before + 1);
}

static void test_json_goes_to_file_stderr_and_syslog(void **state)
{
	const struct log_options options = {
		.file = log_path,
		.to_stderr = true,
		.to_syslog = true,
		.format = LOG_FORMAT_JSON,
	};
	static const struct log_fact facts[] = {{"age", NULL, 7}};
	const struct log_subject subject = {"C-0x1:", facts, 1};
	static const char shape[] = "[{]\"time\":\"20[0-9T:.+Z-]*\",\"pid\":[0-9]+,"
				    "\"level\":\"LOG\",\"age\":7,\"message\":\"text\"[}]";
	int listener = listen_as_syslog();
	char pattern[256];

	(void)state;
	assert_true(log_configure(&options));
	assert_true(log_has_facts);
	log_write_about(LEVEL_LOG, &subject, "%s", "text");
	(void)snprintf(pattern, sizeof(pattern), "%s\n$", shape);
	assert_matches(read_file(log_path), pattern);
	assert_matches(read_all(pipe_ends[0]), pattern);
	(void)snprintf(pattern, sizeof(pattern), "\\]: %s$", shape);
	assert_matches(read_all(listener), pattern);
	(void)close(listener);
}

static void test_text_form_has_the_prefix_and_no_facts(void **state)
{
	static const struct log_fact facts[] = {{"age", NULL, 7}};
	const struct log_subject subject = {"C-0x1: app/x@unix:1", facts, 1};

	(void)state;
	configure_file(log_path);
	assert_false(log_has_facts);
	log_write_about(LEVEL_LOG, &subject, "text");
	assert_string_equal(text_of(read_file(log_path)), "LOG C-0x1: app/x@unix:1 text\n");
}

/* Set the variable with which systemd identifies stderr as the journal. */
static void set_journal_stream(void)
{
	struct stat status;
	char text[64];

	assert_int_equal(fstat(STDERR_FILENO, &status), 0);
	(void)snprintf(text, sizeof(text), "%llu:%llu", (unsigned long long)status.st_dev,
		(unsigned long long)status.st_ino);
	assert_int_equal(setenv("JOURNAL_STREAM", text, 1), 0);
}

static void test_stderr_connected_to_the_journal_gets_fields(void **state)
{
	static const struct log_fact facts[] = {{"side", "client", 0}};
	const struct log_subject subject = {"C-0x1:", facts, 1};
	int listener = listen_as_syslog();

	(void)state;
	log_set_journal_path(socket_path);
	set_journal_stream();
	configure_stderr();
	assert_true(log_has_facts);
	log_write_about(LEVEL_ERROR, &subject, "text");
	assert_string_equal(read_all(listener),
		"PRIORITY=3\nSYSLOG_IDENTIFIER=pgbouncer\nMESSAGE=C-0x1: text\n"
		"PGUSHER_SIDE=client\n");
	assert_string_equal(read_all(pipe_ends[0]), "");
	(void)close(listener);
}

static void test_stderr_not_connected_to_the_journal_gets_lines(void **state)
{
	int listener = listen_as_syslog();

	(void)state;
	log_set_journal_path(socket_path);
	assert_int_equal(setenv("JOURNAL_STREAM", "1:1", 1), 0);
	configure_stderr();
	log_write(LEVEL_LOG, "text");
	assert_string_equal(text_of(read_all(pipe_ends[0])), "LOG text\n");
	assert_string_equal(read_all(listener), "");
	/*
	 * If the journal's socket cannot be reached, lines go to stderr instead of being lost.
	 */
	(void)close(listener);
	(void)unlink(socket_path);
	set_journal_stream();
	configure_stderr();
	log_write(LEVEL_LOG, "again");
	assert_string_equal(text_of(read_all(pipe_ends[0])), "LOG again\n");
}

static void test_blocked_journal_loses_lines_and_counts_them(void **state)
{
	int listener = listen_as_syslog();
	uint64_t before;

	(void)state;
	log_set_journal_path(socket_path);
	set_journal_stream();
	configure_stderr();
	before = log_lost();
	(void)alarm(20);
	for (int i = 0; i < 20000; i++)
		log_write(LEVEL_LOG, "not read yet");
	(void)alarm(0);
	assert_in_range(log_lost() - before, 1, 19999);
	(void)read_all(listener);
	log_write(LEVEL_LOG, "read again");
	assert_matches(read_all(listener), "MESSAGE=log: [0-9]+ lines were lost here\n");
	assert_matches(content, "MESSAGE=read again\n");
	(void)close(listener);
}

static void test_partial_line_is_ended_before_the_next(void **state)
{
	struct rlimit limit, old;
	struct stat status;
	const uint64_t before = log_lost();

	(void)state;
	configure_file(log_path);
	log_write(LEVEL_LOG, "first");
	assert_int_equal(stat(log_path, &status), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = (rlim_t)status.st_size + 10;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	log_write(LEVEL_LOG, "second");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(log_lost() - before, 1);
	log_write(LEVEL_LOG, "third");
	assert_matches(read_file(log_path),
		"^[^\n]*LOG first\n2[0-9-]{9}\n[^\n]*WARNING log: 1 lines were lost here\n"
		"[^\n]*LOG third\n$");
}

static void test_lines_are_counted_by_level(void **state)
{
	const uint64_t warnings = log_count(LEVEL_WARNING), logs = log_count(LEVEL_LOG);
	const uint64_t debugs = log_count(LEVEL_DEBUG);

	(void)state;
	/* Lost lines are counted too. */
	if (access("/dev/full", W_OK) != 0)
		skip();
	configure_file("/dev/full");
	log_write(LEVEL_WARNING, "one");
	log_write(LEVEL_LOG, "two");
	log_write(LEVEL_LOG, "three");
	log_write(LEVEL_DEBUG, "not written");
	assert_int_equal(log_count(LEVEL_WARNING) - warnings, 1);
	assert_int_equal(log_count(LEVEL_LOG) - logs, 2);
	assert_int_equal(log_count(LEVEL_DEBUG) - debugs, 0);
}

static usec_t moved_time = 5000 * USEC_PER_SEC;

static usec_t moved_clock(void)
{
	return moved_time;
}

static void write_similar(int count, const char *about, int at_most)
{
	const struct log_likeness likeness = {
		.kind = "kind", .about = about, .at_most = at_most};

	for (int i = 1; i <= count; i++)
		log_write_repeated(LEVEL_LOG, NULL, &likeness, "line %d", i);
}

static void test_similar_lines_are_limited_per_second(void **state)
{
	const struct log_options options = {.file = log_path, .repeats = 3};
	const uint64_t left_out = log_left_out(), count = log_count(LEVEL_LOG);

	(void)state;
	clock_set_source(moved_clock);
	assert_true(log_configure(&options));
	write_similar(10, "10.0.0.1", 0);
	log_report_repeats();
	assert_matches(read_file(log_path), "line 1\n.*line 2\n.*line 3\n$");
	assert_int_equal(log_left_out() - left_out, 7);
	assert_int_equal(log_count(LEVEL_LOG) - count, 10);
	moved_time += USEC_PER_SEC;
	log_report_repeats();
	assert_matches(read_file(log_path),
		"line 3\n[^\n]* LOG 7 more like this \\(10[.]0[.]0[.]1\\): line 10\n$");
	/* log_close() reports suppressed lines that were not reported yet. */
	moved_time += USEC_PER_SEC;
	write_similar(4, "10.0.0.1", 1);
	log_close();
	assert_matches(read_file(log_path),
		"line 1\n[^\n]* LOG 3 more like this \\(10[.]0[.]0[.]1\\): line 4\n$");
	clock_set_source(NULL);
}

static void test_similar_lines_are_all_written_without_a_limit(void **state)
{
	const struct log_options options = {.file = log_path, .repeats = 0};
	const uint64_t left_out = log_left_out();

	(void)state;
	assert_true(log_configure(&options));
	write_similar(50, "10.0.0.1", 1);
	assert_int_equal(log_left_out(), left_out);
	assert_matches(read_file(log_path), "line 49\n.*line 50\n$");
}

/* Another writer may fill a shared pipe between poll() and write(). */
static void test_shared_pipe_never_blocks(void **state)
{
	(void)state;
	configure_stderr();
	/*
	 * The second description is non-blocking, so that even a write without poll() is safe.
	 */
	for (int descriptor = 3; descriptor < 64; descriptor++) {
		struct stat ours, stderr_status;

		if (descriptor == pipe_ends[0] || descriptor == pipe_ends[1] ||
			fstat(descriptor, &ours) != 0)
			continue;
		assert_int_equal(fstat(STDERR_FILENO, &stderr_status), 0);
		if (ours.st_ino == stderr_status.st_ino &&
			ours.st_dev == stderr_status.st_dev) {
			assert_int_equal(fcntl(descriptor, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
			assert_int_equal(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
			return;
		}
	}
	fail_msg("stderr was not opened a second time");
}

static void test_child_writes_its_own_process_id(void **state)
{
	char pattern[32];
	int status;
	pid_t child;

	(void)state;
	configure_file(log_path);
	log_write(LEVEL_LOG, "parent");
	child = fork();
	if (child == 0) {
		log_write(LEVEL_LOG, "child");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	(void)snprintf(pattern, sizeof(pattern), "\\[%d\\] LOG child\n", (int)child);
	assert_matches(read_file(log_path), pattern);
}

int main(void)
{
#define LOG_TEST(test) cmocka_unit_test_setup_teardown(test, redirect_stderr, restore_stderr)
	const struct CMUnitTest tests[] = {
		/* Must be first, since the time zone is read once per second. */
		LOG_TEST(test_line_is_in_local_time),
		LOG_TEST(test_line_has_time_zone_process_level_and_text),
		LOG_TEST(test_every_level_has_its_name),
		LOG_TEST(test_verbosity_selects_the_levels_written),
		LOG_TEST(test_newline_is_followed_by_a_tab_and_trailing_space_cut),
		LOG_TEST(test_control_bytes_are_escaped),
		LOG_TEST(test_long_line_is_cut),
		LOG_TEST(test_errno_is_preserved),
		LOG_TEST(test_file_and_stderr_get_the_same_lines),
		LOG_TEST(test_reopen_follows_a_rotation),
		LOG_TEST(test_file_is_appended_to),
		LOG_TEST(test_failure_to_open_the_first_file_is_logged_as_fatal),
		LOG_TEST(test_failure_to_open_a_later_file_keeps_the_old_one),
		LOG_TEST(test_removed_directory_loses_no_line),
		LOG_TEST(test_full_stderr_pipe_loses_lines_and_counts_them),
		LOG_TEST(test_closed_stderr_pipe_loses_lines_and_counts_them),
		LOG_TEST(test_full_named_pipe_as_file_loses_lines_and_counts_them),
		LOG_TEST(test_full_disk_loses_lines_and_counts_them),
		LOG_TEST(test_syslog_gets_priority_ident_and_bare_text),
		LOG_TEST(test_syslog_priorities_follow_the_level),
		LOG_TEST(test_blocked_syslog_loses_lines_and_counts_them),
		LOG_TEST(test_restarted_syslog_is_found),
		LOG_TEST(test_json_goes_to_file_stderr_and_syslog),
		LOG_TEST(test_text_form_has_the_prefix_and_no_facts),
		LOG_TEST(test_stderr_connected_to_the_journal_gets_fields),
		LOG_TEST(test_stderr_not_connected_to_the_journal_gets_lines),
		LOG_TEST(test_blocked_journal_loses_lines_and_counts_them),
		LOG_TEST(test_partial_line_is_ended_before_the_next),
		LOG_TEST(test_lines_are_counted_by_level),
		LOG_TEST(test_similar_lines_are_limited_per_second),
		LOG_TEST(test_similar_lines_are_all_written_without_a_limit),
		LOG_TEST(test_shared_pipe_never_blocks),
		LOG_TEST(test_child_writes_its_own_process_id),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
