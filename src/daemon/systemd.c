/* SPDX-License-Identifier: ISC */
#include "daemon/systemd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "net/address.h"

/* systemd_end() was called. */
static bool silent;

#if HAVE_SYSTEMD

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

/*
 * libsystemd is loaded only if there is a service manager: it brings five libraries for
 * compression and cryptography along, nearly a megabyte.
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

/* Add descriptors to a message; `control` is their room. */
static void attach(struct msghdr *message, void *control, const int *fds, unsigned count)
{
	struct cmsghdr *header;

	message->msg_control = control;
	message->msg_controllen = CMSG_SPACE(count * sizeof(int));
	header = CMSG_FIRSTHDR(message);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(header), fds, count * sizeof(int));
}

/*
 * Send a notification by the documented protocol of sd_notify(3); the function itself would
 * block if the manager does not read. Returns false if nothing was sent.
 */
static bool send_with_sockets(const char *state, const int *fds, unsigned count)
{
	_Alignas(
		struct cmsghdr) char control[CMSG_SPACE(SYSTEMD_SOCKETS_MOST * sizeof(int))] = {
		0};
	const char *path = silent ? NULL : getenv("NOTIFY_SOCKET");
	struct sockaddr_un address;
	struct iovec text = {.iov_base = (void *)(uintptr_t)state, .iov_len = strlen(state)};
	struct msghdr message = {
		.msg_name = &address,
		.msg_namelen = path ? address_unix(&address, path) : 0,
		.msg_iov = &text,
		.msg_iovlen = 1,
	};
	const int fd =
		message.msg_namelen > 0 ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
	ssize_t sent;

	if (fd < 0)
		return false;
	if (count > 0)
		attach(&message, control, fds, count);
	sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
	return sent >= 0;
}

static int list_sockets(char ***names)
{
	return load() ? library.listen_fds(1, names) : -1;
}

usec_t systemd_watchdog(void)
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

static bool send_with_sockets(const char *state, const int *fds, unsigned count)
{
	(void)state;
	(void)fds;
	(void)count;
	return false;
}

static int list_sockets(char ***names)
{
	(void)names;
	return -1;
}

usec_t systemd_watchdog(void)
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

/* Of the sockets that the manager keeps for us; the text of KEPT_NAME behind FDNAME=. */
#define KEPT_NAME "pgusher-kept"
static const char kept_name[] = KEPT_NAME;

static bool sort_sockets(struct systemd_sockets *out, char *const *names, int count)
{
	for (int i = 0; i < count; i++) {
		if (names && strcmp(names[i], "metrics") == 0 && out->metrics < 0)
			out->metrics = FIRST_PASSED + i;
		else if (names && strcmp(names[i], kept_name) == 0 &&
			out->kept_count < SYSTEMD_SOCKETS_MOST)
			out->kept[out->kept_count++] = FIRST_PASSED + i;
		else if (out->client_count < SYSTEMD_SOCKETS_MOST)
			out->clients[out->client_count++] = (struct listen_socket){
				.fd = FIRST_PASSED + i, .is_managers = true};
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
	count = list_sockets(&names);
	done = count >= 0 && sort_sockets(out, names, count);
	for (int i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
	return done;
}

void systemd_keep_sockets(const int *sockets, unsigned count)
{
	if (count == 0)
		return;
	systemd_forget_sockets();
	(void)send_with_sockets("FDSTORE=1\nFDNAME=" KEPT_NAME, sockets, count);
}

void systemd_forget_sockets(void)
{
	(void)send_with_sockets("FDSTOREREMOVE=1\nFDNAME=" KEPT_NAME, NULL, 0);
}

void systemd_close_kept(struct systemd_sockets *sockets)
{
	for (unsigned i = 0; i < sockets->kept_count; i++) {
		if (sockets->kept[i] >= 0)
			close(sockets->kept[i]);
		sockets->kept[i] = -1;
	}
}

/* --- notifications ------------------------------------------------------------------------ */

static bool send_state(const char *state)
{
	return send_with_sockets(state, NULL, 0);
}

/* READY=1, which the manager waits for, could not be sent yet. */
static bool ready_pending;

static void notify(const char *state)
{
	if (ready_pending)
		ready_pending = !send_state("READY=1");
	(void)send_state(state);
}

bool systemd_can_notify(void)
{
	return systemd_is_built() && getenv("NOTIFY_SOCKET");
}

bool systemd_main_process(pid_t process)
{
	char text[64];

	snprintf(text, sizeof(text), "MAINPID=%d", (int)process);
	return send_state(text);
}

void systemd_end(void)
{
	silent = true;
}

void systemd_ready(void)
{
	ready_pending = !send_state("READY=1");
}

void systemd_reloading(void)
{
	struct timespec now;
	char text[64];

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)now.tv_sec * USEC_PER_SEC +
			(unsigned long long)now.tv_nsec / 1000);
	notify(text);
}

void systemd_stopping(void)
{
	notify("STOPPING=1");
}

static void send_status(const char *text)
{
	char state[1200];

	snprintf(state, sizeof(state), "STATUS=%s", text);
	notify(state);
}

/* systemd_progress() has set the status. */
static bool shows_progress;

void systemd_status(const char *text)
{
	if (!shows_progress)
		send_status(text);
}

void systemd_progress(const char *text)
{
	shows_progress = text != NULL;
	send_status(text ? text : "serving clients");
}

/* --- watchdog ----------------------------------------------------------------------------- */

static struct {
	struct deadline deadline;
	struct loop *loop;
	struct crew *crew;
	usec_t period; /* 0: no watchdog */
} watchdog;

/* A worker that has not answered since the last time may be busy: look again soon. */
static void keep_alive(struct deadline *deadline)
{
	const bool all_turn = crew_answers(watchdog.crew);
	const usec_t wait = all_turn ? watchdog.period : watchdog.period / 8;

	if (all_turn)
		notify("WATCHDOG=1");
	wheel_set(&watchdog.loop->wheel, deadline, loop_now(watchdog.loop) + wait);
}

void systemd_watchdog_start(struct loop *loop, struct crew *crew, usec_t limit)
{
	/* Half of the time limit, as sd_watchdog_enabled(3) recommends. */
	watchdog.period = systemd_is_there() ? limit / 2 : 0;
	if (watchdog.period == 0)
		return;
	watchdog.loop = loop;
	watchdog.crew = crew;
	watchdog.deadline.expire = keep_alive;
	keep_alive(&watchdog.deadline);
}

void systemd_watchdog_stop(struct loop *loop)
{
	if (watchdog.period > 0)
		wheel_remove(&loop->wheel, &watchdog.deadline);
	watchdog.period = 0;
}
