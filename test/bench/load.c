/* SPDX-License-Identifier: ISC */
/*
 * Many clients in one process, with little CPU time for each, to load a pooler. Each works as
 * libpq does: one send for a request, one receive when the answer has arrived.
 *
 *   load transactions  -c CLIENTS, each sends the next request when it has its answer
 *   load logins        -c CLIENTS at a time connect, log in, send one query, disconnect
 *   load idle          each number on the input is the number of clients to have; they log in,
 *                      send one query, and stay until the input ends
 *   load bulk          one client sends one query, or with -b BYTES one COPY of that size
 *
 *   -p PORT -u USER -d DATABASE -W PASSWORD   the target; %d in USER becomes the client's number
 *   -D COUNT -k PERCENT                       %d in DATABASE becomes a number below COUNT; so many of
 *                                             a hundred clients have the first, if not as many as
 *                                             have each other
 *   -T                                        TLS, a full handshake for each connection
 *   -q SQL -x -X                              the query, `` for none; by the extended protocol; as
 *                                             a prepared statement, which each client parses once
 *   -s SQL -m COUNT                           each sends this query first; %d in it becomes the
 *                                             client's number, modulo COUNT
 *   -t SECONDS -w SECONDS -n COUNT            duration after a warm-up; or the number in all
 *   -P PID ...                                processes to measure the CPU time of
 *
 * The result is one line of JSON; times are in seconds, those of single requests in microseconds,
 * with -k those of the first database only. `jain` is Jain's index of the numbers of requests of
 * all clients, `jain_least` the least of those of one database's clients.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	AREA_SIZE = 256 * 1024,
	BODY_SIZE = 256, /* bytes of a message that are parsed */
	MOST_LOGGING_IN = 64, /* at a time: less than a backlog */
	COPY_SIZE = 8192,
	MOST_PIDS = 16,
};

#define STATEMENT "s" /* the name of the prepared statement */

enum phase { ABSENT, CONNECTING, OFFERING_TLS, SHAKING_HANDS, LOGGING_IN, ASKING, RESTING };

struct client {
	int fd;
	int number;
	enum phase phase;
	bool failed; /* in its current request */
	bool prepared; /* has sent the first query */
	bool parsed; /* has sent its statement */
	double began;
	uint8_t head[5];
	unsigned head_length;
	uint32_t left; /* of the message's body */
	uint8_t body[BODY_SIZE];
	unsigned body_length;
	SSL *tls;
	long requests; /* done in the window */
};

enum mode { TRANSACTIONS, LOGINS, IDLE, BULK };

static struct {
	enum mode mode;
	int port;
	const char *user;
	const char *database;
	int databases;
	int first_share; /* percent; 0: as many as the others */
	bool tls;
	const char *password;
	const char *sql;
	const char *first;
	int sets;
	bool extended;
	bool prepared;
	int clients;
	double seconds;
	double warming;
	long count;
	uint64_t copy_bytes;
	pid_t pids[MOST_PIDS];
	unsigned pid_count;
} wish = {.user = "app",
	.database = "main",
	.password = "",
	.sql = "SELECT 1",
	.sets = 1,
	.databases = 1,
	.clients = 1,
	.seconds = 1};

static int epoll;
static SSL_CTX *tls_context;
static struct client *clients;
static uint8_t area[AREA_SIZE];
static uint8_t request[16384];
static size_t request_length;

static int present; /* clients that are not ABSENT */
static int logged_in; /* clients after their login */
static int logging_in; /* clients in their login */
static int wanted; /* clients to have */
static bool ending;

/* The measurements between start_window() and end_window(). */
static bool measuring;
static double window_began;
static double window_ended;
static double wall_began;
static double wall_ended;
static double cpu_began;
static double cpu_ended;
static long issued;
static long done;
static long errors;
static uint64_t bytes;
static char first_error[BODY_SIZE];
static float *times;
static size_t times_count;
static size_t times_room;

/* --- the clock ---------------------------------------------------------------------------- */

static double clock_seconds(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) < 0)
		return 0;
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double now(void)
{
	return clock_seconds(CLOCK_MONOTONIC);
}

/* CPU time of the measured processes, all their threads. */
static double cpu(void)
{
	double sum = 0;
	clockid_t clock;

	for (unsigned i = 0; i < wish.pid_count; i++)
		if (wish.pids[i] && clock_getcpuclockid(wish.pids[i], &clock) == 0)
			sum += clock_seconds(clock);
	return sum;
}

static void start_window(void)
{
	measuring = true;
	done = errors = 0;
	bytes = 0;
	times_count = 0;
	for (int i = 0; i < wish.clients; i++)
		clients[i].requests = 0;
	cpu_began = cpu();
	window_began = now();
	wall_began = clock_seconds(CLOCK_REALTIME);
}

static void end_window(void)
{
	measuring = false;
	cpu_ended = cpu();
	window_ended = now();
	wall_ended = clock_seconds(CLOCK_REALTIME);
}

/* --- requests ----------------------------------------------------------------------------- */

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void put_int32(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 24);
	at[1] = (uint8_t)(value >> 16);
	at[2] = (uint8_t)(value >> 8);
	at[3] = (uint8_t)value;
}

/* Append a message to the request. */
static void add(char type, const void *body, size_t length)
{
	if (request_length + 5 + length > sizeof(request)) {
		fprintf(stderr, "request too long\n");
		exit(2);
	}
	request[request_length] = (uint8_t)type;
	put_int32(request + request_length + 1, (uint32_t)length + 4);
	memcpy(request + request_length + 5, body, length);
	request_length += 5 + length;
}

/* The request of all clients, built once. */
static void make_request(void)
{
	char parse[sizeof(request) / 2];
	int length;

	if (!*wish.sql)
		return;
	if (wish.prepared) {
		add('B', "\0" STATEMENT "\0\0\0\0\0\0", 1 + sizeof(STATEMENT) + 6);
		add('D', "P", 2);
		add('E', "\0\0\0\0\0", 5);
		add('S', "", 0);
		return;
	}
	if (!wish.extended) {
		add('Q', wish.sql, strlen(wish.sql) + 1);
		return;
	}
	length = snprintf(parse, sizeof(parse) - 3, "%c%s", 0, wish.sql);
	if (length < 0 || (size_t)length >= sizeof(parse) - 3)
		exit(2);
	memset(parse + length, 0, 3);
	add('P', parse, (size_t)length + 3);
	add('B', "\0\0\0\0\0\0\0\0", 8);
	add('D', "P", 2);
	add('E', "\0\0\0\0\0", 5);
	add('S', "", 0);
}

static void say_error(const char *text)
{
	errors++;
	if (!first_error[0])
		snprintf(first_error, sizeof(first_error), "%s", text);
}

/* Small enough to be sent in one call, on loopback. */
static bool send_now(const struct client *client, const void *data, size_t length)
{
	if (client->tls)
		return SSL_write(client->tls, data, (int)length) == (int)length;
	return send(client->fd, data, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static void leave(struct client *client)
{
	if (client->phase == ABSENT)
		return;
	if (client->phase >= ASKING) {
		send_now(client, "X\0\0\0\4", 5);
		logged_in--;
	} else {
		logging_in--;
	}
	SSL_free(client->tls);
	client->tls = NULL;
	close(client->fd);
	client->phase = ABSENT;
	present--;
}

static void lose(struct client *client, const char *why)
{
	say_error(why);
	leave(client);
}

static void ask(struct client *client)
{
	client->phase = RESTING;
	client->failed = false;
	if (ending || request_length == 0 || (wish.count && issued >= wish.count))
		return;
	issued++;
	client->phase = ASKING;
	client->began = now();
	if (!send_now(client, request, request_length))
		lose(client, strerror(errno));
}

/* Which database a client uses. */
static int database_of(const struct client *client)
{
	const int others = wish.databases - 1;

	if (!wish.first_share || !others)
		return client->number % wish.databases;
	if (client->number % 100 < wish.first_share)
		return 0;
	return 1 + client->number % others;
}

static void connect_client(struct client *client)
{
	const int on = 1;
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)wish.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct epoll_event event = {.events = EPOLLOUT, .data.ptr = client};

	*client = (struct client){.number = (int)(client - clients), .phase = CONNECTING};
	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (client->fd < 0)
		fail("socket");
	setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	present++;
	logging_in++;
	client->began = now();
	if (connect(client->fd, (const struct sockaddr *)&address, sizeof(address)) < 0 &&
		errno != EINPROGRESS)
		fail("connect");
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, client->fd, &event) < 0)
		fail("epoll_ctl");
}

/* The user name, unchanged or with the client's number. */
static void name_user(const struct client *client, char *name, size_t size)
{
	const char *mark = strstr(wish.user, "%d");

	if (mark)
		snprintf(name, size, "%.*s%d%s", (int)(mark - wish.user), wish.user,
			client->number, mark + 2);
	else
		snprintf(name, size, "%s", wish.user);
}

static void send_startup(struct client *client)
{
	uint8_t packet[256];
	char user[64];
	char database[64];
	const char *mark = strstr(wish.database, "%d");
	int length;

	name_user(client, user, sizeof(user));
	snprintf(database, sizeof(database), "%.*s", mark ? (int)(mark - wish.database) : 63,
		wish.database);
	if (mark)
		snprintf(database + strlen(database), sizeof(database) - strlen(database),
			"%d%s", database_of(client), mark + 2);
	length = snprintf((char *)packet + 8, sizeof(packet) - 9, "user%c%s%cdatabase%c%s%c", 0,
		user, 0, 0, database, 0);
	packet[8 + length] = 0;
	put_int32(packet, (uint32_t)length + 9);
	put_int32(packet + 4, 3 << 16);
	client->phase = LOGGING_IN;
	if (!send_now(client, packet, (size_t)length + 9))
		lose(client, strerror(errno));
}

static void on_connected(struct client *client)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};

	if (epoll_ctl(epoll, EPOLL_CTL_MOD, client->fd, &event) < 0)
		fail("epoll_ctl");
	if (!wish.tls) {
		send_startup(client);
		return;
	}
	client->phase = OFFERING_TLS;
	if (!send_now(client, "\0\0\0\10\4\322\26\57", 8))
		lose(client, strerror(errno));
}

/* Messages of a handshake are small enough to be sent at once, on loopback. */
static void shake_hands(struct client *client)
{
	int result;

	if (client->phase == OFFERING_TLS) {
		if (recv(client->fd, area, 1, 0) != 1 || area[0] != 'S') {
			lose(client, "no TLS");
			return;
		}
		client->tls = SSL_new(tls_context);
		if (!client->tls || SSL_set_fd(client->tls, client->fd) != 1)
			fail("SSL_new");
		client->phase = SHAKING_HANDS;
	}
	result = SSL_connect(client->tls);
	if (result == 1)
		send_startup(client);
	else if (SSL_get_error(client->tls, result) != SSL_ERROR_WANT_READ)
		lose(client, "the TLS handshake failed");
}

/* --- logging in --------------------------------------------------------------------------- */

static void digest(const void *data, size_t length, char hex[33])
{
	uint8_t sum[EVP_MAX_MD_SIZE];

	EVP_Digest(data, length, sum, NULL, EVP_md5(), NULL);
	for (int i = 0; i < 16; i++)
		snprintf(hex + 2 * i, 3, "%02x", sum[i]);
}

static void send_password(const struct client *client, const char *secret)
{
	uint8_t packet[256];
	const size_t length = strlen(secret) + 1;

	packet[0] = 'p';
	put_int32(packet + 1, (uint32_t)length + 4);
	memcpy(packet + 5, secret, length);
	send_now(client, packet, length + 5);
}

static void answer_md5(const struct client *client, const uint8_t salt[4])
{
	char text[192];
	char user[64];
	char hash[36] = "md5";

	name_user(client, user, sizeof(user));
	snprintf(text, sizeof(text), "%.120s%.60s", wish.password, user);
	digest(text, strlen(text), text);
	memcpy(text + 32, salt, 4);
	digest(text, 36, hash + 3);
	send_password(client, hash);
}

static void take_authentication(struct client *client)
{
	switch (client->body_length < 4 ? 255 : client->body[3]) {
	case 0:
		break;
	case 3:
		send_password(client, wish.password);
		break;
	case 5:
		answer_md5(client, client->body + 4);
		break;
	default:
		lose(client, "asks for an unknown kind of login");
		break;
	}
}

/* --- answers ------------------------------------------------------------------------------ */

static void keep_time(double microseconds)
{
	if (times_count == times_room) {
		times_room = times_room ? 2 * times_room : 65536;
		times = realloc(times, times_room * sizeof(*times));
		if (!times)
			fail("realloc");
	}
	times[times_count++] = (float)microseconds;
}

/* Send the statement of a client that has just logged in. */
static void send_statement(struct client *client)
{
	uint8_t packet[256];
	const int length = snprintf(
		(char *)packet + 5, sizeof(packet) - 12, "%s%c%s", STATEMENT, 0, wish.sql);

	client->parsed = true;
	if (length < 0 || (size_t)length >= sizeof(packet) - 12)
		exit(2);
	packet[0] = 'P';
	put_int32(packet + 1, (uint32_t)length + 7);
	memcpy(packet + 5 + length, "\0\0\0S\0\0\0\4", 8);
	if (!send_now(client, packet, (size_t)length + 13))
		lose(client, strerror(errno));
}

/* Send the query of a client that has just logged in. */
static void send_first(struct client *client)
{
	uint8_t packet[256];
	const char *mark = strstr(wish.first, "%d");
	const int before = mark ? (int)(mark - wish.first) : (int)strlen(wish.first);
	char number[16] = "";
	int length;

	client->prepared = true;
	if (mark)
		snprintf(number, sizeof(number), "%d", client->number % wish.sets);
	length = snprintf((char *)packet + 5, sizeof(packet) - 5, "%.*s%s%s", before,
		wish.first, number, mark ? mark + 2 : "");
	packet[0] = 'Q';
	put_int32(packet + 1, (uint32_t)length + 5);
	if (!send_now(client, packet, (size_t)length + 6))
		lose(client, strerror(errno));
}

static void finish_request(struct client *client)
{
	if (client->phase == LOGGING_IN && wish.first && !client->prepared) {
		send_first(client);
		return;
	}
	if (client->phase == LOGGING_IN && wish.prepared && !client->parsed) {
		send_statement(client);
		return;
	}
	if (client->phase == LOGGING_IN) {
		logging_in--;
		logged_in++;
		if (wish.mode == LOGINS) {
			const double began = client->began;

			ask(client);
			client->began = began;
		} else if (wish.mode == IDLE) {
			ask(client);
		} else {
			client->phase = RESTING;
		}
		return;
	}
	if (!client->failed) {
		done++;
		client->requests++;
		if (measuring && (!wish.first_share || database_of(client) == 0))
			keep_time((now() - client->began) * 1e6);
	}
	client->phase = RESTING;
	if (wish.mode == TRANSACTIONS)
		ask(client);
	else if (wish.mode == LOGINS)
		leave(client);
}

static void take_message(struct client *client)
{
	const char *text;

	switch (client->head[0]) {
	case 'R':
		take_authentication(client);
		break;
	case 'E':
		client->body[client->body_length < BODY_SIZE ? client->body_length
							     : BODY_SIZE - 1] = 0;
		text = (const char *)client->body;
		while (*text && *text != 'M')
			text += strlen(text) + 1;
		say_error(*text ? text + 1 : "error");
		client->failed = true;
		break;
	case 'Z':
		finish_request(client);
		break;
	default:
		break;
	}
}

static void keep_body(struct client *client, const uint8_t *at, size_t length)
{
	for (size_t i = 0; i < length && client->body_length < BODY_SIZE; i++)
		client->body[client->body_length++] = at[i];
}

/* Parse the received bytes. */
static void take_bytes(struct client *client, const uint8_t *at, size_t length)
{
	const uint8_t *end = at + length;

	while (at < end && client->phase != ABSENT) {
		size_t some;

		if (client->head_length < 5) {
			client->head[client->head_length++] = *at++;
			if (client->head_length < 5)
				continue;
			client->left =
				((uint32_t)client->head[1] << 24 |
					(uint32_t)client->head[2] << 16 |
					(uint32_t)client->head[3] << 8 | client->head[4]) -
				4;
			client->body_length = 0;
		}
		some = client->left < (size_t)(end - at) ? client->left : (size_t)(end - at);
		if (client->head[0] == 'R' || client->head[0] == 'E')
			keep_body(client, at, some);
		at += some;
		client->left -= (uint32_t)some;
		if (client->left == 0) {
			client->head_length = 0;
			take_message(client);
		}
	}
}

static ssize_t receive(const struct client *client)
{
	int got;

	if (!client->tls)
		return recv(client->fd, area, sizeof(area), 0);
	got = SSL_read(client->tls, area, sizeof(area));
	if (got <= 0 && SSL_get_error(client->tls, got) == SSL_ERROR_WANT_READ)
		errno = EAGAIN;
	else if (got <= 0)
		return 0;
	return got > 0 ? got : -1;
}

static void on_event(struct client *client, uint32_t what)
{
	ssize_t got;

	if (client->phase == ABSENT)
		return;
	if (client->phase == CONNECTING) {
		if (what & (EPOLLERR | EPOLLHUP))
			lose(client, "cannot connect");
		else
			on_connected(client);
		return;
	}
	if (client->phase < LOGGING_IN) {
		shake_hands(client);
		return;
	}
	do {
		got = receive(client);
		if (got < 0 && errno == EAGAIN)
			return;
		if (got <= 0) {
			lose(client, got < 0 ? strerror(errno) : "connection closed");
			return;
		}
		bytes += (uint64_t)got;
		take_bytes(client, area, (size_t)got);
	} while (client->tls); /* may hold more that has been received */
}

/* --- the loop ----------------------------------------------------------------------------- */

/* Start the logins of missing clients. */
static void fill(void)
{
	for (int i = 0; i < wanted && present < wanted && logging_in < MOST_LOGGING_IN; i++)
		if (clients[i].phase == ABSENT)
			connect_client(&clients[i]);
}

static void turn(int milliseconds)
{
	struct epoll_event events[512];
	const int count = epoll_wait(epoll, events, 512, milliseconds);

	for (int i = 0; i < count; i++)
		if (events[i].data.ptr)
			on_event(events[i].data.ptr, events[i].events);
}

static void run_until(double deadline)
{
	while (now() < deadline) {
		fill();
		turn(10);
		if (wish.count && done + errors >= wish.count)
			return;
	}
}

/* Have so many clients, all logged in; false if a login failed. */
static bool gather(int count)
{
	const double deadline = now() + 120;

	wanted = count;
	while (logged_in < count) {
		fill();
		turn(100);
		if (errors || now() > deadline)
			return false;
	}
	return true;
}

static void run_transactions(void)
{
	if (!gather(wish.clients)) {
		say_error("not every client could log in");
		return;
	}
	done = 0;
	if (wish.count)
		start_window();
	for (int i = 0; i < wish.clients; i++)
		ask(&clients[i]);
	if (!wish.count) {
		run_until(now() + wish.warming);
		start_window();
	}
	run_until(now() + (wish.count ? 600 : wish.seconds));
	end_window();
}

static void run_logins(void)
{
	wanted = wish.clients;
	run_until(now() + wish.warming);
	start_window();
	run_until(now() + wish.seconds);
	end_window();
}

/* The input is a list of numbers; each is answered when so many clients are logged in. */
static void run_idle(void)
{
	char line[32];
	size_t length = 0;
	struct epoll_event event = {.events = EPOLLIN};

	start_window();
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event) < 0)
		fail("epoll_ctl");
	for (;;) {
		struct epoll_event ready;
		const int count = epoll_wait(epoll, &ready, 1, -1);

		if (count == 1 && ready.data.ptr) {
			on_event(ready.data.ptr, ready.events);
		} else if (count == 1) {
			const ssize_t got = read(STDIN_FILENO, line + length, 1);

			if (got <= 0)
				break;
			length++;
			if (line[length - 1] != '\n' && length < sizeof(line) - 1)
				continue;
			line[length] = 0;
			length = 0;
			if (atoi(line) > wish.clients || !gather(atoi(line)))
				break;
			while (request_length && done < logged_in && !errors)
				turn(100);
			printf("%d\n", logged_in);
			fflush(stdout);
		}
	}
	end_window();
}

/* Send so many bytes as CopyData of a client's usual size. */
static void copy_in(int fd)
{
	static uint8_t block[AREA_SIZE];
	const size_t each = 5 + COPY_SIZE;
	const size_t in_block = sizeof(block) / each;

	memset(block, 'x', sizeof(block));
	for (size_t i = 0; i < in_block; i++) {
		block[i * each] = 'd';
		put_int32(block + i * each + 1, COPY_SIZE + 4);
	}
	for (uint64_t sent = 0; sent < wish.copy_bytes; sent += in_block * each) {
		for (size_t at = 0; at < in_block * each;) {
			const ssize_t some =
				send(fd, block + at, in_block * each - at, MSG_NOSIGNAL);

			if (some < 0) {
				say_error(strerror(errno));
				return;
			}
			at += (size_t)some;
		}
		bytes += in_block * each;
	}
	if (send(fd, "c\0\0\0\4", 5, MSG_NOSIGNAL) != 5)
		say_error(strerror(errno));
}

/* A single client needs no epoll. */
static void run_bulk(void)
{
	struct client *client = &clients[0];

	if (!gather(1))
		return;
	epoll_ctl(epoll, EPOLL_CTL_DEL, client->fd, NULL);
	fcntl(client->fd, F_SETFL, 0);
	start_window();
	ask(client);
	if (wish.copy_bytes && recv(client->fd, area, 1, 0) == 1) {
		take_bytes(client, area, 1);
		if (area[0] == 'G')
			copy_in(client->fd);
	}
	while (client->phase == ASKING) {
		const ssize_t got = recv(client->fd, area, sizeof(area), 0);

		if (got <= 0) {
			say_error("connection closed");
			break;
		}
		bytes += (uint64_t)got;
		take_bytes(client, area, (size_t)got);
	}
	end_window();
}

/* --- results ------------------------------------------------------------------------------ */

static int compare(const void *one, const void *other)
{
	const float a = *(const float *)one;
	const float b = *(const float *)other;

	return (a > b) - (a < b);
}

static double time_at(double share)
{
	return times_count ? (double)times[(size_t)((double)(times_count - 1) * share)] : 0;
}

/* Jain's index of the requests of clients, of all or of one database. */
static double jain(int database)
{
	double sum = 0;
	double squares = 0;
	int count = 0;

	for (int i = 0; i < wish.clients; i++) {
		const double each = (double)clients[i].requests;

		if (database >= 0 && database_of(&clients[i]) != database)
			continue;
		sum += each;
		squares += each * each;
		count++;
	}
	return squares > 0 ? sum * sum / (squares * count) : 1;
}

static double least_jain(void)
{
	double least = 1;

	for (int i = 0; i < wish.databases; i++)
		least = jain(i) < least ? jain(i) : least;
	return least;
}

static void tell(void)
{
	qsort(times, times_count, sizeof(*times), compare);
	for (char *at = first_error; *at; at++)
		if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ')
			*at = ' ';
	printf("{\"done\": %ld, \"errors\": %ld, \"said\": \"%s\", \"seconds\": %.6f, "
	       "\"cpu\": %.9f, \"bytes\": %llu, \"began\": %.6f, \"ended\": %.6f, "
	       "\"p50\": %.2f, \"p99\": %.2f, \"max\": %.2f, \"jain\": %.4f, "
	       "\"jain_least\": %.4f}\n",
		done, errors, first_error, window_ended - window_began, cpu_ended - cpu_began,
		(unsigned long long)bytes, wall_began, wall_ended, time_at(0.5), time_at(0.99),
		time_at(1), jain(-1), least_jain());
}

static enum mode read_mode(const char *name)
{
	static const char *const names[] = {
		[TRANSACTIONS] = "transactions",
		[LOGINS] = "logins",
		[IDLE] = "idle",
		[BULK] = "bulk",
	};

	for (unsigned i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return (enum mode)i;
	fprintf(stderr, "usage: load transactions|logins|idle|bulk OPTION...\n");
	exit(2);
}

static void read_options(int argc, char **argv)
{
	int option;

	wish.mode = read_mode(argv[1]);
	while ((option = getopt(argc - 1, argv + 1, "p:u:d:D:k:TW:q:s:m:xXc:t:w:n:b:P:")) !=
		-1) {
		switch (option) {
		case 'p':
			wish.port = atoi(optarg);
			break;
		case 'u':
			wish.user = optarg;
			break;
		case 'd':
			wish.database = optarg;
			break;
		case 'D':
			wish.databases = atoi(optarg) > 0 ? atoi(optarg) : 1;
			break;
		case 'k':
			wish.first_share = atoi(optarg);
			break;
		case 'T':
			wish.tls = true;
			break;
		case 'W':
			wish.password = optarg;
			break;
		case 'q':
			wish.sql = optarg;
			break;
		case 's':
			wish.first = optarg;
			break;
		case 'm':
			wish.sets = atoi(optarg) > 0 ? atoi(optarg) : 1;
			break;
		case 'x':
			wish.extended = true;
			break;
		case 'X':
			wish.prepared = true;
			break;
		case 'c':
			wish.clients = atoi(optarg);
			break;
		case 't':
			wish.seconds = atof(optarg);
			break;
		case 'w':
			wish.warming = atof(optarg);
			break;
		case 'n':
			wish.count = atol(optarg);
			break;
		case 'b':
			wish.copy_bytes = strtoull(optarg, NULL, 10);
			break;
		case 'P':
			if (wish.pid_count == MOST_PIDS)
				exit(2);
			wish.pids[wish.pid_count++] = (pid_t)atoi(optarg);
			break;
		default:
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	static void (*const run[])(void) = {
		[TRANSACTIONS] = run_transactions,
		[LOGINS] = run_logins,
		[IDLE] = run_idle,
		[BULK] = run_bulk,
	};

	read_options(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	make_request();
	clients = calloc((size_t)wish.clients, sizeof(*clients));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (wish.tls)
		tls_context = SSL_CTX_new(TLS_client_method());
	if (!clients || epoll < 0 || (wish.tls && !tls_context))
		fail("start");
	run[wish.mode]();
	ending = true;
	for (int i = 0; i < wish.clients; i++)
		leave(&clients[i]);
	tell();
	return 0;
}
