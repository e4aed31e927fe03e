/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "net/listener.h"

static struct loop loop;
static struct loop_clock loop_clock;
static struct listeners set;
static char folder[64]; /* for Unix sockets and the log */
static char log_path[96];
static char why[256];

enum { MOST_ACCEPTED = 256 };

static int accepted[MOST_ACCEPTED];
static int accepted_count;
static bool last_is_unix;

static usec_t fake_now;

static usec_t fake_clock(void)
{
	return fake_now;
}

static void on_accepted(
	void *context, int fd, const struct sockaddr *from, socklen_t length, bool is_unix)
{
	assert_ptr_equal(context, &set);
	assert_true(accepted_count < MOST_ACCEPTED);
	accepted[accepted_count++] = fd;
	last_is_unix = is_unix;
	if (!is_unix)
		assert_int_not_equal(address_of(from, length).family, AF_UNSPEC);
}

static void close_accepted(void)
{
	while (accepted_count > 0)
		close(accepted[--accepted_count]);
}

static int set_up(void **state)
{
	(void)state;
	alarm(60);
	accepted_count = 0;
	fake_now = 1000 * USEC_PER_SEC;
	clock_set_source(fake_clock);
	strcpy(folder, "/tmp/pgusher-test.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(log_path, sizeof(log_path), "%s/log", folder);
	log_configure(&(struct log_options){.file = log_path});
	TAILQ_INIT(&set.list);
	return loop_init(&loop, &loop_clock) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	close_accepted();
	if (set.loop)
		listeners_close_all(&set, true);
	loop_free(&loop);
	log_configure(&(struct log_options){.to_stderr = true});
	clock_set_source(NULL);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

/* Returns how often this text is in the log. */
static int logged(const char *text)
{
	FILE *file = fopen(log_path, "r");
	char line[4096];
	int times = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		times += strstr(line, text) != NULL;
	fclose(file);
	return times;
}

static bool open_with(const struct listen_options *options)
{
	why[0] = '\0';
	return listeners_open(&set, &loop, options, on_accepted, &set, why, sizeof(why));
}

static struct listen_options tcp_on(const char *addresses)
{
	return (struct listen_options){.addresses = addresses, .backlog = 128};
}

static struct listen_options unix_in(const char *dir)
{
	return (struct listen_options){
		.unix_dir = dir, .port = 6432, .backlog = 128, .unix_mode = 0700};
}

static int connect_tcp(const struct listener *listener)
{
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(listener->address.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static int connect_unix(const char *path)
{
	struct sockaddr_un to;
	const socklen_t length = address_unix(&to, path);
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (connect(fd, (const struct sockaddr *)&to, length) == 0)
		return fd;
	close(fd);
	return -1;
}

static void turn(int times)
{
	while (times-- > 0)
		loop_turn(&loop, false);
}

static int option_of(int fd, int level, int option)
{
	int value = -1;
	socklen_t length = sizeof(value);

	assert_int_equal(getsockopt(fd, level, option, &value, &length), 0);
	return value;
}

/* Returns a port that no other process uses, and that other sets may share. */
static int free_port(void)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	const int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct address address;

	assert_int_equal(bind(fd, (const struct sockaddr *)&in, sizeof(in)), 0);
	address = address_local(fd);
	close(fd);
	return address.port;
}

/* --- TCP --------------------------------------------------------------------------------- */

static void test_tcp_connections_are_accepted(void **state)
{
	const struct listen_options options = tcp_on("127.0.0.1");
	const struct listener *listener;
	char text[LISTENER_TEXT_SIZE], line[LISTENER_TEXT_SIZE + 32];
	int peers[5];

	(void)state;
	assert_true(open_with(&options));
	listener = listeners_next(&set, NULL);
	assert_null(listeners_next(&set, listener));
	snprintf(line, sizeof(line), "LOG listening on %s", listener_text(listener, text));
	assert_int_equal(logged(line), 1);
	for (int i = 0; i < 5; i++)
		peers[i] = connect_tcp(listener);
	turn(8);
	assert_int_equal(accepted_count, 5);
	assert_false(last_is_unix);
	assert_int_equal(fcntl(accepted[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	assert_int_equal(fcntl(accepted[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	for (int i = 0; i < 5; i++)
		close(peers[i]);
}

static void on_bytes(evutil_socket_t fd, short what, void *argument)
{
	char byte;

	(void)what;
	assert_int_equal(read(fd, &byte, 1), 1);
	*(int *)argument = accepted_count;
}

/*
 * A disconnected client makes room for a new one, even if the kernel reports the new one first.
 */
static void test_connections_are_accepted_after_other_events(void **state)
{
	const struct listen_options options = tcp_on("127.0.0.1");
	int pipes[2], accepted_before = -1;
	struct event event;

	(void)state;
	assert_true(open_with(&options));
	assert_int_equal(pipe(pipes), 0);
	event_assign(&event, loop.base, pipes[0], EV_READ, on_bytes, &accepted_before);
	assert_int_equal(event_add(&event, NULL), 0);
	close(connect_tcp(listeners_next(&set, NULL))); /* the kernel reports this one first */
	assert_int_equal(write(pipes[1], "x", 1), 1);
	loop_turn(&loop, true);
	assert_int_equal(accepted_before, 0);
	assert_int_equal(accepted_count, 1);
	close(pipes[0]);
	close(pipes[1]);
}

static void test_burst_is_accepted_many_at_a_time(void **state)
{
	const struct listen_options options = tcp_on("127.0.0.1");
	static int peers[128];

	(void)state;
	assert_true(open_with(&options));
	for (int i = 0; i < 128; i++)
		peers[i] = connect_tcp(listeners_next(&set, NULL));
	/* The first event accepts one; the following ones all, up to the limit per event. */
	turn(1);
	assert_int_equal(accepted_count, 1);
	turn(1);
	assert_int_equal(accepted_count, 65);
	turn(1);
	assert_int_equal(accepted_count, 128);
	for (int i = 0; i < 128; i++)
		close(peers[i]);
}

static void test_names_are_resolved_and_blanks_ignored(void **state)
{
	const struct listen_options options = tcp_on(" 127.0.0.1 ,, localhost,");
	bool found = false;

	(void)state;
	assert_true(open_with(&options));
	for (const struct listener *at = NULL; (at = listeners_next(&set, at)) != NULL;)
		found = found || at->address.family == AF_INET;
	assert_true(found);
}

static void test_star_listens_on_all_addresses(void **state)
{
	struct listen_options options = tcp_on("*");
	char text[LISTENER_TEXT_SIZE];
	int peer;

	(void)state;
	options.port = free_port();
	assert_true(open_with(&options));
	for (const struct listener *at = NULL; (at = listeners_next(&set, at)) != NULL;) {
		listener_text(at, text);
		if (at->address.family == AF_INET6)
			assert_int_equal(option_of(at->fd, IPPROTO_IPV6, IPV6_V6ONLY), 1);
		assert_true(
			strncmp(text, "0.0.0.0:", 8) == 0 || strncmp(text, "[::]:", 5) == 0);
	}
	peer = connect_tcp(&(struct listener){.address.port = (uint16_t)options.port});
	turn(2);
	assert_int_equal(accepted_count, 1);
	close(peer);
}

static void test_name_that_does_not_resolve_is_fatal(void **state)
{
	const struct listen_options options = tcp_on("127.0.0.1,no/such/host");

	(void)state;
	assert_false(open_with(&options));
	assert_memory_equal(why, "getaddrinfo('no/such/host', '0') = ", 35);
	assert_null(listeners_next(&set, NULL));
}

static void test_overlong_item_is_fatal(void **state)
{
	char item[400];
	const struct listen_options options = tcp_on(item);

	(void)state;
	memset(item, 'a', sizeof(item) - 1);
	item[sizeof(item) - 1] = '\0';
	assert_false(open_with(&options));
	assert_memory_equal(why, "failed to parse listen_addr list: aaa", 37);
}

static void test_address_in_use_is_fatal_only_if_no_other_address_works(void **state)
{
	struct listen_options options = tcp_on("127.0.0.1");
	struct listeners other;
	char line[128];

	(void)state;
	options.port = free_port();
	assert_true(
		listeners_open(&other, &loop, &options, on_accepted, &set, why, sizeof(why)));
	assert_false(open_with(&options));
	assert_string_equal(
		why, "failed to listen on any address in listen_addr list: 127.0.0.1");
	snprintf(line, sizeof(line),
		"WARNING cannot listen on 127.0.0.1:%d: bind(): Address already in use",
		options.port);
	assert_int_equal(logged(line), 1);
	options.addresses = "127.0.0.1,127.0.0.2";
	assert_true(open_with(&options));
	assert_int_equal(logged(line), 2);
	assert_null(listeners_next(&set, listeners_next(&set, NULL)));
	listeners_close_all(&other, true);
}

static void test_reuseport_lets_two_share_an_address(void **state)
{
	struct listen_options options = tcp_on("127.0.0.1");
	struct listeners other;

	(void)state;
	options.port = free_port();
	options.reuseport = true;
	assert_true(
		listeners_open(&other, &loop, &options, on_accepted, &set, why, sizeof(why)));
	assert_true(open_with(&options));
	listeners_close_all(&other, true);
}

static void test_accepted_sockets_inherit_tcp_options(void **state)
{
	struct listen_options options = tcp_on("127.0.0.1");
	int peer, fd, plain_size;

	(void)state;
	options.tcp = (struct tcp_options){
		.keepalive = true,
		.keepcnt = 3,
		.keepidle = 77,
		.keepintvl = 11,
		.user_timeout = 4321,
		.buffer = 50000,
	};
	assert_true(open_with(&options));
	peer = connect_tcp(listeners_next(&set, NULL));
	turn(1);
	fd = accepted[0];
	assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	assert_int_equal(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPCNT), 3);
	assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 77);
	assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL), 11);
	assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 4321);
	assert_int_equal(option_of(fd, SOL_SOCKET, SO_SNDBUF), 100000);
	assert_int_equal(option_of(fd, SOL_SOCKET, SO_RCVBUF), 100000);
	close(peer);
	close_accepted();

	/* A reload sets the defaults again. */
	listeners_set_tcp_options(&set, &(struct tcp_options){0});
	peer = connect_tcp(listeners_next(&set, NULL));
	turn(1);
	fd = accepted[0];
	plain_size = option_of(peer, IPPROTO_TCP, TCP_KEEPIDLE);
	assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	assert_int_equal(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
	assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), plain_size);
	assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
	assert_int_not_equal(option_of(fd, SOL_SOCKET, SO_RCVBUF), 100000);
	close(peer);
}

static void test_defer_accept_may_be_switched(void **state)
{
	struct listen_options options = tcp_on("127.0.0.1");
	const struct listener *listener;

	(void)state;
	options.defer_accept = true;
	assert_true(open_with(&options));
	listener = listeners_next(&set, NULL);
	assert_int_equal(option_of(listener->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT), 1);
	listeners_set_defer_accept(&set, false);
	assert_int_equal(option_of(listener->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT), 0);
	listeners_set_defer_accept(&set, true);
	assert_int_equal(option_of(listener->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT), 1);
}

static void test_refused_tcp_option_is_a_warning(void **state)
{
	struct listen_options options = tcp_on("127.0.0.1");

	(void)state;
	options.tcp.keepalive = true;
	options.tcp.keepcnt = 100000;
	options.tcp.keepidle = 70;
	assert_true(open_with(&options));
	assert_int_equal(logged("WARNING cannot set all TCP options"), 1);
	assert_int_equal(
		option_of(listeners_next(&set, NULL)->fd, IPPROTO_TCP, TCP_KEEPIDLE), 70);
}

/* --- Unix -------------------------------------------------------------------------------- */

static void test_unix_socket_has_its_mode_and_name(void **state)
{
	struct listen_options options = unix_in(folder);
	char path[128], text[LISTENER_TEXT_SIZE];
	struct stat status;
	int peer;

	(void)state;
	options.unix_mode = 0712;
	assert_true(open_with(&options));
	snprintf(path, sizeof(path), "%s/.s.PGSQL.6432", folder);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0712);
	peer = connect_unix(path);
	assert_true(peer >= 0);
	turn(1);
	assert_int_equal(accepted_count, 1);
	assert_true(last_is_unix);
	listener_text(listeners_next(&set, NULL), text);
	assert_memory_equal(text, "unix:", 5);
	assert_string_equal(text + 5, path);
	assert_int_equal(listeners_next(&set, NULL)->address.port, 6432);
	close(peer);
	listeners_close_all(&set, true);
	assert_int_equal(stat(path, &status), -1);
}

static void test_stale_unix_socket_is_replaced(void **state)
{
	const struct listen_options options = unix_in(folder);

	(void)state;
	assert_true(open_with(&options));
	listeners_close_all(&set, false);
	assert_false(listener_unix_is_in_use(folder, 6432, NULL, 0));
	assert_true(open_with(&options));
	assert_true(listener_unix_is_in_use(folder, 6432, NULL, 0));
	assert_false(listener_unix_is_in_use(folder, 6433, NULL, 0));
	assert_false(listener_unix_is_in_use("", 6432, NULL, 0));
	assert_false(listener_unix_is_in_use(NULL, 6432, NULL, 0));
}

static void test_lock_file_of_another_server_is_fatal(void **state)
{
	const struct listen_options options = unix_in(folder);
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/.s.PGSQL.6432.lock", folder);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	assert_false(open_with(&options));
	assert_string_equal(why, "unix port 6432 is in use");
}

static void test_missing_folder_is_fatal(void **state)
{
	const struct listen_options options = unix_in("/no/such/folder");

	(void)state;
	assert_false(open_with(&options));
	assert_string_equal(why, "failed to create unix socket");
	assert_int_equal(
		logged("ERROR cannot listen on unix:/no/such/folder/.s.PGSQL.6432"), 1);
}

static void test_too_long_folder_is_fatal(void **state)
{
	char dir[200];
	const struct listen_options options = unix_in(dir);

	(void)state;
	memset(dir, '/', sizeof(dir) - 1);
	dir[sizeof(dir) - 1] = '\0';
	assert_false(open_with(&options));
	assert_string_equal(why, "failed to create unix socket");
	assert_false(listener_unix_is_in_use(dir, 6432, NULL, 0));
}

static void test_group_by_name_or_number_and_unknown_one(void **state)
{
	struct listen_options options = unix_in(folder);
	char number[16];
	struct stat status;
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/.s.PGSQL.6432", folder);
	options.unix_group = "no-such-group";
	assert_false(open_with(&options));
	assert_string_equal(why, "failed to create unix socket");
	assert_int_equal(stat(path, &status), -1);
	snprintf(number, sizeof(number), "%u", (unsigned)getgid());
	options.unix_group = number;
	assert_true(open_with(&options));
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_gid, getgid());
	if (!getgrgid(getgid()))
		return;
	listeners_close_all(&set, true);
	options.unix_group = getgrgid(getgid())->gr_name;
	assert_true(open_with(&options));
}

static void test_abstract_socket_has_no_file(void **state)
{
	char dir[64];
	const struct listen_options options = unix_in(dir);
	char path[128], text[LISTENER_TEXT_SIZE];
	int peer;

	(void)state;
	snprintf(dir, sizeof(dir), "@pgusher-test-%d", (int)getpid());
	snprintf(path, sizeof(path), "%s/.s.PGSQL.6432", dir);
	assert_false(listener_unix_is_in_use(dir, 6432, NULL, 0));
	assert_true(open_with(&options));
	assert_true(listener_unix_is_in_use(dir, 6432, NULL, 0));
	assert_string_equal(listener_text(listeners_next(&set, NULL), text) + 5, path);
	peer = connect_unix(path);
	assert_true(peer >= 0);
	close(peer);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_socket_file_of_another_process_is_not_removed(void **state)
{
	const struct listen_options options = unix_in(folder);
	struct listeners successor;

	(void)state;
	assert_true(open_with(&options));
	assert_true(listeners_open(
		&successor, &loop, &options, on_accepted, &set, why, sizeof(why)));
	listeners_close_all(&set, true);
	assert_true(listener_unix_is_in_use(folder, 6432, NULL, 0));
	listeners_close_all(&successor, true);
	assert_false(listener_unix_is_in_use(folder, 6432, NULL, 0));
}

/* --- kept by a service manager ------------------------------------------------------------ */

/* Listen, keep copies of the sockets as a service manager does, and crash. Returns their number. */
static unsigned crash(const struct listen_options *options, int *kept)
{
	const struct listener *listener = NULL;
	unsigned count = 0;

	assert_true(open_with(options));
	while ((listener = listeners_next(&set, listener)) != NULL)
		kept[count++] = dup(listener->fd);
	listeners_close_all(&set, false);
	return count;
}

static void test_clients_wait_in_kept_sockets(void **state)
{
	struct listen_options options = unix_in(folder);
	char path[128];
	struct listener tcp = {0};
	int kept[4], by_tcp, by_unix;

	(void)state;
	options.addresses = "127.0.0.1";
	options.port = 0;
	assert_true(open_with(&options));
	tcp.address.port = listeners_next(&set, NULL)->address.port;
	options.port = tcp.address.port;
	listeners_close_all(&set, true);
	options.kept_count = crash(&options, kept);
	options.kept = kept;
	assert_int_equal(options.kept_count, 2);
	snprintf(path, sizeof(path), "%s/.s.PGSQL.%d", folder, options.port);
	by_tcp = connect_tcp(&tcp);
	by_unix = connect_unix(path);
	assert_true(by_tcp >= 0 && by_unix >= 0);
	assert_false(listener_unix_is_in_use(folder, options.port, kept, 2));
	assert_true(listener_unix_is_in_use(folder, options.port, NULL, 0));
	assert_true(open_with(&options));
	assert_int_equal(kept[0], -1);
	assert_int_equal(kept[1], -1);
	assert_int_equal(logged("service manager has kept"), 2);
	turn(10);
	/* And the connections by which the path was looked at. */
	assert_true(accepted_count >= 2);
	close(by_tcp);
	close(by_unix);
	listeners_close_all(&set, true);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_kept_sockets_of_other_addresses_are_left(void **state)
{
	struct listen_options options = tcp_on("127.0.0.1");
	int kept[4];

	(void)state;
	options.kept_count = crash(&options, kept);
	options.kept = kept;
	options.addresses = "127.0.0.2";
	assert_true(open_with(&options));
	assert_true(kept[0] >= 0);
	assert_int_equal(logged("service manager has kept"), 0);
	close(kept[0]);
}

/* It would keep the port of the new address, and so each next process from its start. */
static void test_kept_socket_in_the_way_of_another_address_is_ended(void **state)
{
	static const char *const addresses[] = {"127.0.0.1", "*", "127.0.0.1", "0.0.0.0"};
	struct listen_options options = tcp_on("127.0.0.3");

	(void)state;
	assert_true(open_with(&options));
	options.port = listeners_next(&set, NULL)->address.port;
	listeners_close_all(&set, true);
	for (unsigned i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		int kept[4], held[4], client;

		options.kept_count = crash(&options, kept);
		for (unsigned k = 0; k < options.kept_count; k++)
			held[k] = dup(kept[k]); /* as the manager does */
		options.kept = kept;
		options.addresses = addresses[i];
		assert_true(open_with(&options));
		client = connect_tcp(listeners_next(&set, NULL));
		assert_true(client >= 0);
		close(client);
		listeners_close_all(&set, true);
		for (unsigned k = 0; k < options.kept_count; k++) {
			close(held[k]);
			if (kept[k] >= 0)
				close(kept[k]);
		}
		options.kept_count = 0;
	}
}

static void test_kept_socket_is_known_by_another_name_of_its_folder(void **state)
{
	struct listen_options options = unix_in(folder);
	char link[128];
	int kept[4];

	(void)state;
	options.kept_count = crash(&options, kept);
	options.kept = kept;
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink(folder, link), 0);
	assert_false(listener_unix_is_in_use(link, options.port, kept, options.kept_count));
	options.unix_dir = link;
	assert_true(open_with(&options));
	assert_int_equal(kept[0], -1);
	listeners_close_all(&set, true);
	assert_int_equal(unlink(link), 0);
	assert_false(listener_unix_is_in_use(folder, options.port, NULL, 0));
}

/* Clients reach the socket that has the file, so the kept one is of no use. */
static void test_kept_socket_without_its_file_is_left(void **state)
{
	struct listen_options options = unix_in(folder);
	char path[128];
	int kept[4];

	(void)state;
	options.kept_count = crash(&options, kept);
	options.kept = kept;
	snprintf(path, sizeof(path), "%s/.s.PGSQL.6432", folder);
	assert_int_equal(unlink(path), 0);
	assert_true(open_with(&options));
	assert_true(kept[0] >= 0);
	close(kept[0]);
}

/* The child of a test: listen on the path, say so, and wait for its end. */
static void listen_elsewhere(const char *path, int said)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un address;
	const socklen_t length = address_unix(&address, path);

	if (bind(fd, (const struct sockaddr *)&address, length) != 0 || listen(fd, 1) != 0 ||
		write(said, "", 1) != 1)
		_exit(1);
	pause();
	_exit(0);
}

static void test_path_that_another_process_has_replaced_is_in_use(void **state)
{
	struct listen_options options = unix_in(folder);
	char path[128], byte;
	int kept[4], ends[2];
	pid_t child;

	(void)state;
	assert_int_equal(crash(&options, kept), 1);
	assert_false(listener_unix_is_in_use(folder, 6432, kept, 1));
	snprintf(path, sizeof(path), "%s/.s.PGSQL.6432", folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0)
		listen_elsewhere(path, ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_true(listener_unix_is_in_use(folder, 6432, kept, 1));
	options.kept = kept;
	options.kept_count = 1;
	assert_true(open_with(&options));
	assert_true(kept[0] >= 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(kept[0]);
	close(ends[0]);
	close(ends[1]);
}

/* --- the set ----------------------------------------------------------------------------- */

static void test_no_address_to_listen_on_is_fatal(void **state)
{
	const struct listen_options options = {.addresses = "", .unix_dir = "", .port = 6432};

	(void)state;
	assert_false(open_with(&options));
	assert_string_equal(why, "nowhere to listen on");
}

static void test_closing_tcp_keeps_the_unix_socket(void **state)
{
	struct listen_options options = unix_in(folder);
	char path[128];
	int peer;

	(void)state;
	options.addresses = "127.0.0.1";
	options.port = free_port();
	assert_true(open_with(&options));
	listeners_close_tcp(&set);
	assert_true(listeners_next(&set, NULL)->is_unix);
	assert_null(listeners_next(&set, listeners_next(&set, NULL)));
	snprintf(path, sizeof(path), "%s/.s.PGSQL.%d", folder, options.port);
	peer = connect_unix(path);
	turn(1);
	assert_int_equal(accepted_count, 1);
	close(peer);
}

static void test_paused_set_accepts_after_it_is_resumed(void **state)
{
	const struct listen_options options = tcp_on("127.0.0.1");
	int peer;

	(void)state;
	assert_true(open_with(&options));
	listeners_pause(&set);
	peer = connect_tcp(listeners_next(&set, NULL));
	turn(3);
	assert_int_equal(accepted_count, 0);
	listeners_resume(&set);
	turn(1);
	assert_int_equal(accepted_count, 1);
	close(peer);
}

/* --- no descriptors ---------------------------------------------------------------------- */

/* Set the limit of descriptors to the number that is open now. */
static struct rlimit forbid_descriptors(void)
{
	const int next = dup(STDERR_FILENO);
	struct rlimit before, now;

	close(next);
	getrlimit(RLIMIT_NOFILE, &before);
	now = before;
	now.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	return before;
}

static void advance(usec_t step)
{
	fake_now += step;
	turn(1);
}

static void test_without_descriptors_the_set_rests_and_tries_again(void **state)
{
	const struct listen_options options = tcp_on("127.0.0.1");
	struct rlimit before;
	int peers[2], extra;

	(void)state;
	assert_true(open_with(&options));
	peers[0] = connect_tcp(listeners_next(&set, NULL));
	peers[1] = connect_tcp(listeners_next(&set, NULL));
	before = forbid_descriptors();
	turn(3);
	assert_int_equal(accepted_count, 0);
	assert_true(set.resting);
	/* The rest of the process can open the spare descriptor meanwhile. */
	extra = dup(STDERR_FILENO);
	assert_true(extra >= 0);
	assert_int_equal(dup(STDERR_FILENO), -1);
	for (int i = 0; i < 12; i++)
		advance(USEC_PER_SEC / 2);
	assert_int_equal(accepted_count, 0);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(logged("ERROR accept() failed: Too many open files"), 1);
	for (int i = 0; i < 12; i++)
		advance(USEC_PER_SEC / 2);
	assert_false(set.resting);
	assert_int_equal(accepted_count, 2);
	assert_true(set.rests_for_descriptors > 0);
	assert_int_equal(set.rests_for_memory, 0);
	close(extra);
	close(peers[0]);
	close(peers[1]);
}

static void test_freed_descriptor_ends_the_rest(void **state)
{
	const struct listen_options options = tcp_on("127.0.0.1");
	struct rlimit before;
	int peers[2], extra = dup(STDERR_FILENO);

	(void)state;
	assert_true(open_with(&options));
	peers[0] = connect_tcp(listeners_next(&set, NULL));
	peers[1] = connect_tcp(listeners_next(&set, NULL));
	before = forbid_descriptors();
	turn(2);
	assert_int_equal(accepted_count, 0);
	close(extra);
	listeners_descriptor_freed(&set);
	turn(3);
	/*
	 * One descriptor was freed and one connection accepted; the other waits without a log
	 * line.
	 */
	assert_int_equal(accepted_count, 1);
	assert_true(set.resting);
	close_accepted();
	listeners_descriptor_freed(&set);
	turn(3);
	assert_int_equal(accepted_count, 1);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(logged("accept() failed"), 1);
	close(peers[0]);
	close(peers[1]);
}

static int room; /* so many connections may be accepted */

static bool has_room(void *context)
{
	assert_ptr_equal(context, &set);
	return accepted_count < room;
}

static void test_without_room_the_set_rests_shortly(void **state)
{
	const struct listen_options options = tcp_on("127.0.0.1");
	int peers[3];

	(void)state;
	assert_true(open_with(&options));
	set.has_room = has_room;
	room = 1;
	for (unsigned i = 0; i < 3; i++)
		peers[i] = connect_tcp(listeners_next(&set, NULL));
	turn(3);
	assert_int_equal(accepted_count, 1);
	assert_true(set.resting);
	assert_true(set.spare >= 0);
	assert_int_equal(set.rests_for_descriptors, 1);
	for (int i = 0; i < 10; i++)
		advance(USEC_PER_SEC / 10);
	assert_int_equal(accepted_count, 1);
	listeners_descriptor_freed(&set);
	assert_true(set.resting);
	room = 3;
	advance(USEC_PER_SEC / 10);
	assert_false(set.resting);
	turn(3);
	assert_int_equal(accepted_count, 3);
	assert_int_equal(
		logged("ERROR accepting no connections for now: all file descriptors"), 1);
	for (unsigned i = 0; i < 3; i++)
		close(peers[i]);
}

static void test_rest_does_not_end_a_pause(void **state)
{
	const struct listen_options options = tcp_on("127.0.0.1");
	struct rlimit before;
	int peer;

	(void)state;
	assert_true(open_with(&options));
	peer = connect_tcp(listeners_next(&set, NULL));
	before = forbid_descriptors();
	turn(2);
	assert_true(set.resting);
	listeners_pause(&set);
	setrlimit(RLIMIT_NOFILE, &before);
	listeners_descriptor_freed(&set);
	turn(2);
	assert_int_equal(accepted_count, 0);
	listeners_resume(&set);
	turn(1);
	assert_int_equal(accepted_count, 1);
	close(peer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_tcp_connections_are_accepted),
		TEST(test_connections_are_accepted_after_other_events),
		TEST(test_burst_is_accepted_many_at_a_time),
		TEST(test_names_are_resolved_and_blanks_ignored),
		TEST(test_star_listens_on_all_addresses),
		TEST(test_name_that_does_not_resolve_is_fatal),
		TEST(test_overlong_item_is_fatal),
		TEST(test_address_in_use_is_fatal_only_if_no_other_address_works),
		TEST(test_reuseport_lets_two_share_an_address),
		TEST(test_accepted_sockets_inherit_tcp_options),
		TEST(test_defer_accept_may_be_switched),
		TEST(test_refused_tcp_option_is_a_warning),
		TEST(test_unix_socket_has_its_mode_and_name),
		TEST(test_stale_unix_socket_is_replaced),
		TEST(test_lock_file_of_another_server_is_fatal),
		TEST(test_missing_folder_is_fatal),
		TEST(test_too_long_folder_is_fatal),
		TEST(test_group_by_name_or_number_and_unknown_one),
		TEST(test_abstract_socket_has_no_file),
		TEST(test_socket_file_of_another_process_is_not_removed),
		TEST(test_clients_wait_in_kept_sockets),
		TEST(test_kept_sockets_of_other_addresses_are_left),
		TEST(test_kept_socket_in_the_way_of_another_address_is_ended),
		TEST(test_kept_socket_is_known_by_another_name_of_its_folder),
		TEST(test_kept_socket_without_its_file_is_left),
		TEST(test_path_that_another_process_has_replaced_is_in_use),
		TEST(test_no_address_to_listen_on_is_fatal),
		TEST(test_closing_tcp_keeps_the_unix_socket),
		TEST(test_paused_set_accepts_after_it_is_resumed),
		TEST(test_without_descriptors_the_set_rests_and_tries_again),
		TEST(test_freed_descriptor_ends_the_rest),
		TEST(test_without_room_the_set_rests_shortly),
		TEST(test_rest_does_not_end_a_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
