/* SPDX-License-Identifier: ISC */
#include "net/dns_channel.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_identity.h"
#include "base/log.h"

enum {
	/*
	 * c-ares waits this long for the first try and doubles the time for each further one: a
	 * name server that comes back after an outage gets the question again within four
	 * seconds.
	 */
	FIRST_TIMEOUT_MS = 1000,
	TRIES = 3,
};

/* The least time between two checks of resolv.conf. */
#define CHECK_PAUSE USEC_PER_SEC

static const char system_file[] = "/etc/resolv.conf";

LIST_HEAD(question_list, dns_question);

/* A socket of c-ares in our loop. */
struct watch {
	LIST_ENTRY(watch) entry;
	struct dns_channel *channel;
	struct event event;
	ares_socket_t fd;
};

LIST_HEAD(watch_list, watch);

struct dns_channel {
	struct loop *loop;
	ares_channel ares;
	struct deadline timeout; /* the next call of c-ares even if no socket is ready */
	struct watch_list watches;
	struct question_list asked;
	size_t count;
	struct file_identity file; /* resolv.conf when it was last read */
	usec_t checked; /* time of the last check of that file */
	bool destroying; /* inside ares_destroy(): its callbacks are not answers */
	char *resolv_conf, *servers; /* NULL: the system's */
	void (*renewed)(void *argument);
	void *argument;
};

/* --- c-ares on our loop ------------------------------------------------------------------- */

/*
 * Wake at least once per check of resolv.conf: a correction of the file must help the questions
 * in flight.
 */
static void set_timeout(struct dns_channel *channel)
{
	struct timeval most = {.tv_sec = CHECK_PAUSE / USEC_PER_SEC}, room, *wait;

	wait = ares_timeout(channel->ares, &most, &room);
	if (channel->count > 0)
		wheel_set(&channel->loop->wheel, &channel->timeout,
			loop_now(channel->loop) + wait->tv_sec * USEC_PER_SEC + wait->tv_usec);
	else
		deadline_cancel(&channel->timeout);
}

static void on_timeout(struct deadline *timeout)
{
	struct dns_channel *channel =
		(struct dns_channel *)((char *)timeout - offsetof(struct dns_channel, timeout));

	dns_channel_check(channel);
	ares_process_fd(channel->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	set_timeout(channel);
}

static void on_socket(evutil_socket_t fd, short what, void *argument)
{
	/* c-ares may free the watch in this call. */
	struct dns_channel *channel = ((struct watch *)argument)->channel;

	ares_process_fd(channel->ares, what & EV_READ ? fd : ARES_SOCKET_BAD,
		what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	set_timeout(channel);
}

static struct watch *find_watch(struct dns_channel *channel, ares_socket_t fd)
{
	struct watch *watch;

	LIST_FOREACH(watch, &channel->watches, entry)
	if (watch->fd == fd)
		return watch;
	return NULL;
}

static struct watch *watch_new(struct dns_channel *channel, ares_socket_t fd)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->channel = channel;
	watch->fd = fd;
	LIST_INSERT_HEAD(&channel->watches, watch, entry);
	return watch;
}

/* c-ares wants events for these directions; for neither: it is about to close the socket. */
static void on_socket_state(void *argument, ares_socket_t fd, int readable, int writable)
{
	struct dns_channel *channel = argument;
	struct watch *watch = find_watch(channel, fd);
	const short what = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0));

	if (watch)
		event_del(&watch->event);
	else if (what != 0)
		watch = watch_new(channel, fd);
	if (!watch)
		return;
	if (what == 0) {
		LIST_REMOVE(watch, entry);
		free(watch);
		return;
	}
	/* If this fails, the question ends with the timeout of c-ares. */
	event_assign(&watch->event, channel->loop->base, fd, (short)(what | EV_PERSIST),
		on_socket, watch);
	event_add(&watch->event, NULL);
}

/* --- questions ---------------------------------------------------------------------------- */

static void finish(struct dns_question *question, const struct dns_answer *answer)
{
	struct dns_channel *channel = question->channel;

	/* The question stays in the list: it is repeated, or dns_channel_free() removes it. */
	if (channel->destroying)
		return;
	LIST_REMOVE(question, entry);
	channel->count--;
	question->channel = NULL;
	question->answered(question, answer);
}

static void on_addresses(
	void *argument, int status, int timeouts, struct ares_addrinfo *addresses)
{
	struct dns_question *question = argument;
	struct dns_answer answer = {.status = status, .addresses = addresses};

	(void)timeouts;
	if (status == ARES_SUCCESS && !addresses)
		answer.status = ARES_ENODATA;
	if (addresses && (status != ARES_SUCCESS || question->channel->destroying)) {
		ares_freeaddrinfo(addresses);
		answer.addresses = NULL;
	}
	finish(question, &answer);
}

static void on_serial(
	void *argument, int status, int timeouts, unsigned char *message, int length)
{
	struct dns_answer answer = {.status = status};
	struct ares_soa_reply *reply;

	(void)timeouts;
	if (status == ARES_SUCCESS)
		answer.status = ares_parse_soa_reply(message, length, &reply);
	if (answer.status == ARES_SUCCESS) {
		answer.serial = reply->serial;
		ares_free_data(reply);
	}
	finish(argument, &answer);
}

static void send_question(struct dns_question *question)
{
	const struct ares_addrinfo_hints hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};
	ares_channel ares = question->channel->ares;

	switch (question->kind) {
	case DNS_ADDRESSES:
		/* A name in the hosts file is answered from inside this call. */
		ares_getaddrinfo(ares, question->name, NULL, &hints, on_addresses, question);
		break;
	case DNS_SERIAL:
		ares_query(ares, question->name, ns_c_in, ns_t_soa, on_serial, question);
		break;
	}
}

void dns_channel_ask(struct dns_channel *channel, struct dns_question *question,
	enum dns_kind kind, const char *name, dns_function *answered)
{
	question->channel = channel;
	question->kind = kind;
	question->name = name;
	question->answered = answered;
	LIST_INSERT_HEAD(&channel->asked, question, entry);
	channel->count++;
	send_question(question);
	set_timeout(channel);
}

/* --- resolv.conf -------------------------------------------------------------------------- */

static const char *file_of(const struct dns_channel *channel)
{
	return channel->resolv_conf ? channel->resolv_conf : system_file;
}

/* Returns all zeros when the file does not exist. */
static struct file_identity file_now(const struct dns_channel *channel)
{
	struct file_identity identity = {0};

	file_identify(file_of(channel), &identity);
	return identity;
}

static int open_ares(struct dns_channel *channel, ares_channel *out)
{
	struct ares_options options = {
		.timeout = FIRST_TIMEOUT_MS,
		.tries = TRIES,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = channel,
		.resolvconf_path = channel->resolv_conf,
	};
	int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
	int status;

	/* Before c-ares reads the file, so that a change in between is noticed later. */
	channel->file = file_now(channel);
	channel->checked = loop_now(channel->loop);
	if (channel->resolv_conf) {
		if (access(channel->resolv_conf, R_OK) != 0)
			log_write(LEVEL_WARNING, "cannot read resolv_conf: %s: %m",
				channel->resolv_conf);
		mask |= ARES_OPT_RESOLVCONF;
	}
	status = ares_init_options(out, &options, mask);
	if (status != ARES_SUCCESS || !channel->servers)
		return status;
	status = ares_set_servers_ports_csv(*out, channel->servers);
	if (status != ARES_SUCCESS)
		ares_destroy(*out);
	return status;
}

static void ask_all_again(struct dns_channel *channel)
{
	struct question_list again = LIST_HEAD_INITIALIZER(again);
	struct dns_question *question;

	LIST_SWAP(&again, &channel->asked, dns_question, entry);
	while ((question = LIST_FIRST(&again)) != NULL) {
		LIST_REMOVE(question, entry);
		LIST_INSERT_HEAD(&channel->asked, question, entry);
		send_question(question);
	}
}

void dns_channel_renew(struct dns_channel *channel)
{
	const ares_channel old = channel->ares;
	ares_channel fresh;
	const int status = open_ares(channel, &fresh);

	if (status != ARES_SUCCESS) {
		log_write(LEVEL_WARNING, "dns setup failed: %s, going on as before",
			ares_strerror(status));
		return;
	}
	channel->destroying = true;
	ares_destroy(old);
	channel->destroying = false;
	channel->ares = fresh;
	if (channel->renewed)
		channel->renewed(channel->argument);
	ask_all_again(channel);
	set_timeout(channel);
}

void dns_channel_check(struct dns_channel *channel)
{
	struct file_identity file;

	if (loop_now(channel->loop) - channel->checked < CHECK_PAUSE)
		return;
	channel->checked = loop_now(channel->loop);
	file = file_now(channel);
	if (file_identity_same(&file, &channel->file))
		return;
	log_write(LEVEL_LOG, "%s has changed, looking up names anew", file_of(channel));
	dns_channel_renew(channel);
}

/* --- making and freeing ------------------------------------------------------------------- */

static bool copy_texts(struct dns_channel *channel, const struct dns_channel_options *options)
{
	const char *file = options->resolv_conf;

	if (file && *file && !(channel->resolv_conf = strdup(file)))
		return false;
	return !options->servers || (channel->servers = strdup(options->servers)) != NULL;
}

static int library_status;

static void init_library(void)
{
	library_status = ares_library_init(ARES_LIB_INIT_ALL);
}

/*
 * Returns a status of c-ares. The library counts its users without a lock; so it is initialised
 * once for all channels, and never cleaned up, which would free nothing.
 */
static int use_library(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, init_library);
	return library_status;
}

static void free_memory(struct dns_channel *channel)
{
	free(channel->resolv_conf);
	free(channel->servers);
	free(channel);
}

struct dns_channel *dns_channel_new(
	struct loop *loop, const struct dns_channel_options *options, int *status)
{
	struct dns_channel *channel = calloc(1, sizeof(*channel));

	*status = ARES_ENOMEM;
	if (!channel)
		return NULL;
	channel->loop = loop;
	channel->timeout.expire = on_timeout;
	channel->renewed = options->renewed;
	channel->argument = options->argument;
	LIST_INIT(&channel->watches);
	LIST_INIT(&channel->asked);
	if (copy_texts(channel, options))
		*status = use_library();
	if (*status == ARES_SUCCESS) {
		*status = open_ares(channel, &channel->ares);
		if (*status == ARES_SUCCESS)
			return channel;
	}
	free_memory(channel);
	return NULL;
}

void dns_channel_free(struct dns_channel *channel)
{
	struct dns_question *question;

	if (!channel)
		return;
	channel->destroying = true;
	ares_destroy(channel->ares);
	while ((question = LIST_FIRST(&channel->asked)) != NULL) {
		LIST_REMOVE(question, entry);
		question->channel = NULL;
	}
	wheel_remove(&channel->loop->wheel, &channel->timeout);
	free_memory(channel);
}

size_t dns_channel_asked(const struct dns_channel *channel)
{
	return channel->count;
}
