/* SPDX-License-Identifier: ISC */
#include "daemon/systemd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "net/address.h"

#if HAVE_SYSTEMD

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

/*
 * Loaded where there is a service manager only: it brings five libraries for compression and
 * cryptography along, nearly a megabyte that nobody else has to pay for.
 */
static struct {
	bool tried;
	__typeof__(sd_listen_fds_with_names) *listen_fds;
	__typeof__(sd_watchdog_enabled) *watchdog_enabled;
} library;

static bool load(void)
{
	void *handle;

	if (library.tried || !systemd_is_there())
		return library.listen_fds && library.watchdog_enabled;
	library.tried = true;
	handle = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		log_write(
			LEVEL_WARNING, "cannot speak with the service manager: %s", dlerror());
		return false;
	}
	*(void **)&library.listen_fds = dlsym(handle, "sd_listen_fds_with_names");
	*(void **)&library.watchdog_enabled = dlsym(handle, "sd_watchdog_enabled");
	return library.listen_fds && library.watchdog_enabled;
}

/*
 * sd_notify(3), whose protocol is for everybody, would wait for a manager that does not read.
 * False: it was not told.
 */
static bool send_state(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address;
	const socklen_t length = path ? address_unix(&address, path) : 0;
	const int fd = length > 0 ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
	ssize_t sent;

	if (fd < 0)
		return false;
	sent = sendto(fd, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL,
		(const struct sockaddr *)&address, length);
	close(fd);
	return sent >= 0;
}

static int passed(char ***names)
{
	return load() ? library.listen_fds(1, names) : -1;
}

/* Microseconds after which it gives us up; 0: it does not watch. */
static usec_t patience(void)
{
	uint64_t limit = 0;

	return getenv("WATCHDOG_USEC") && load() && library.watchdog_enabled(0, &limit) > 0
		? (usec_t)limit
		: 0;
}

bool systemd_is_built(void)
{
	return true;
}

#else

static bool send_state(const char *state)
{
	(void)state;
	return false;
}

static int passed(char ***names)
{
	(void)names;
	return -1;
}

static usec_t patience(void)
{
	return 0;
}

bool systemd_is_built(void)
{
	return false;
}

#endif

bool systemd_is_there(void)
{
	return getenv("NOTIFY_SOCKET") || getenv("LISTEN_FDS");
}

/* --- sockets ------------------------------------------------------------------------------ */

enum { FIRST_PASSED = 3 };

static bool sort_sockets(struct systemd_sockets *out, char *const *names, int count)
{
	for (int i = 0; i < count; i++) {
		if (names && strcmp(names[i], "metrics") == 0 && out->metrics < 0)
			out->metrics = FIRST_PASSED + i;
		else if (out->client_count < SYSTEMD_SOCKETS_MOST)
			out->clients[out->client_count++] = FIRST_PASSED + i;
		else
			return false;
	}
	return true;
}

bool systemd_take_sockets(struct systemd_sockets *out)
{
	char **names = NULL;
	bool done;
	int count;

	*out = (struct systemd_sockets){.metrics = -1};
	if (!getenv("LISTEN_FDS"))
		return true;
	count = passed(&names);
	done = count >= 0 && sort_sockets(out, names, count);
	for (int i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
	return done;
}

/* --- telling ------------------------------------------------------------------------------ */

/* The one message that it waits for, and has not had room for yet. */
static bool is_ready_due;

static void tell(const char *state)
{
	if (is_ready_due)
		is_ready_due = !send_state("READY=1");
	(void)send_state(state);
}

void systemd_ready(void)
{
	is_ready_due = !send_state("READY=1");
}

void systemd_reloading(void)
{
	struct timespec now;
	char text[64];

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)now.tv_sec * USEC_PER_SEC +
			(unsigned long long)now.tv_nsec / 1000);
	tell(text);
}

void systemd_stopping(void)
{
	tell("STOPPING=1");
}

void systemd_status(const char *text)
{
	char state[600];

	snprintf(state, sizeof(state), "STATUS=%s", text);
	tell(state);
}

/* --- watchdog ----------------------------------------------------------------------------- */

static struct {
	struct deadline deadline;
	struct loop *loop;
	usec_t period; /* 0: nobody watches */
} watchdog;

static void bark(struct deadline *deadline)
{
	tell("WATCHDOG=1");
	wheel_set(&watchdog.loop->wheel, deadline, loop_now(watchdog.loop) + watchdog.period);
}

void systemd_watchdog_start(struct loop *loop)
{
	/* Twice in the time it has, as sd_watchdog_enabled(3) recommends. */
	watchdog.period = patience() / 2;
	if (watchdog.period == 0)
		return;
	watchdog.loop = loop;
	watchdog.deadline.expire = bark;
	bark(&watchdog.deadline);
}

void systemd_watchdog_stop(struct loop *loop)
{
	if (watchdog.period > 0)
		wheel_remove(&loop->wheel, &watchdog.deadline);
	watchdog.period = 0;
}
