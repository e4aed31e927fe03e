/* SPDX-License-Identifier: ISC */
/*
 * What it costs to send a notification to each of many clients, if nothing else is done: sends the same
 * bytes once to each of COUNT connections on this machine, ROUNDS times, and prints the microseconds of
 * processor time of one send. On the loopback interface that includes the receiving side's work in the
 * kernel, since this runs in the sender's call.
 *
 * Usage: send_floor COUNT ROUNDS BYTES tcp|FILE
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_storage place;
static socklen_t place_length;
static int count, rounds, bytes, done[2];

static void watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		err(1, "epoll_ctl");
}

/* Connects, and reads everything; tells the sender when each connection has got a round. */
static void receive(void)
{
	const int epoll = epoll_create1(0);
	struct epoll_event events[64];
	char data[4096];

	for (int i = 0; i < count; i++) {
		const int fd = socket(place.ss_family, SOCK_STREAM, 0);

		if (connect(fd, (struct sockaddr *)&place, place_length) != 0)
			err(1, "connect");
		fcntl(fd, F_SETFL, O_NONBLOCK);
		watch(epoll, fd);
	}
	for (int round = 0; round < rounds; round++) {
		for (int got = 0; got < count;) {
			const int ready = epoll_wait(epoll, events, 64, -1);

			for (int i = 0; i < ready; i++)
				got += read(events[i].data.fd, data, sizeof(data)) > 0;
		}
		if (write(done[1], "", 1) != 1)
			err(1, "write");
	}
	exit(0);
}

static int open_listener(const char *where)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&place;
	struct sockaddr_un *un = (struct sockaddr_un *)&place;
	int fd;

	if (strcmp(where, "tcp") == 0) {
		in->sin_family = AF_INET;
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		place_length = sizeof(*in);
	} else {
		un->sun_family = AF_UNIX;
		snprintf(un->sun_path, sizeof(un->sun_path), "%s", where);
		place_length = sizeof(*un);
	}
	fd = socket(place.ss_family, SOCK_STREAM, 0);
	if (bind(fd, (struct sockaddr *)&place, place_length) != 0 || listen(fd, 128) != 0)
		err(1, "bind");
	if (place.ss_family == AF_INET)
		getsockname(fd, (struct sockaddr *)&place, &place_length);
	return fd;
}

static double cpu(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
		(double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void send_round(const int *fds, const char *data)
{
	char end;

	for (int i = 0; i < count; i++) {
		if (send(fds[i], data, (size_t)bytes, MSG_NOSIGNAL) != bytes)
			err(1, "send");
	}
	if (read(done[0], &end, 1) != 1)
		err(1, "read");
}

int main(int argc, char **argv)
{
	const int one = 1;
	double before;
	int listener, *fds;
	char *data;

	if (argc != 5)
		errx(1, "usage: send_floor COUNT ROUNDS BYTES tcp|FILE");
	count = atoi(argv[1]);
	rounds = atoi(argv[2]);
	bytes = atoi(argv[3]);
	fds = calloc((size_t)count, sizeof(*fds));
	data = calloc(1, (size_t)bytes);
	listener = open_listener(argv[4]);
	if (!fds || !data || pipe(done) != 0)
		err(1, "no memory or pipe");
	if (fork() == 0)
		receive();
	for (int i = 0; i < count; i++) {
		fds[i] = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
		setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	}
	before = cpu();
	for (int round = 0; round < rounds; round++)
		send_round(fds, data);
	printf("%f\n", (cpu() - before) / count / rounds);
	return 0;
}
