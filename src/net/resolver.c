/* SPDX-License-Identifier: ISC */
#include "net/resolver.h"

#include <ares.h>
#include <arpa/inet.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(name) ((name)->unhashed = true)
#include <uthash.h>

enum {
	/*
	 * c-ares waits this long for the first answer, twice as long for the next, and so on: a name
	 * server that was silent for a while is asked again soon after it is back.
	 */
	FIRST_TIMEOUT_MS = 1000,
	TRIES = 4,
};

union host_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

TAILQ_HEAD(query_list, resolver_query);
TAILQ_HEAD(name_list, resolver_name);

struct resolver_name {
	UT_hash_handle hh;
	TAILQ_ENTRY(resolver_name) entry; /* the name unused for longest stands first */
	struct resolver *resolver;
	struct query_list waiting; /* askers to be answered, in the order they came */
	struct loop_task task; /* answers them */
	bool asking; /* c-ares is at work and knows our address */
	bool answering; /* callbacks are running: not to be evicted by them */
	bool unhashed; /* no memory to put it into the table */
	int status; /* of the last look-up; before the first: ARES_ENODATA */
	usec_t expires; /* until then the last look-up holds; 0: there was none */
	union host_address *addresses; /* of the last success */
	size_t count, next; /* next: handed out next */
	char name[];
};

/* A socket of c-ares in our loop. */
struct watch {
	LIST_ENTRY(watch) entry;
	struct resolver *resolver;
	struct event event;
	ares_socket_t fd;
};

LIST_HEAD(watch_list, watch);

struct resolver {
	struct loop *loop;
	ares_channel channel;
	struct deadline timeout; /* when c-ares wants to be called though no socket is ready */
	struct watch_list watches;
	struct resolver_name *names; /* hash table by name */
	struct name_list order;
	size_t count, count_max, in_flight;
	usec_t found_life, failed_life;
	struct resolver_name *refused; /* stands for every name there is no room for */
	bool ending;
};

/* --- c-ares on our loop ------------------------------------------------------------------ */

static void set_timeout(struct resolver *resolver)
{
	struct timeval wait;

	if (ares_timeout(resolver->channel, NULL, &wait))
		wheel_set(&resolver->loop->wheel, &resolver->timeout,
			loop_now(resolver->loop) + wait.tv_sec * USEC_PER_SEC + wait.tv_usec);
	else
		deadline_cancel(&resolver->timeout);
}

static void on_timeout(struct deadline *timeout)
{
	struct resolver *resolver =
		(struct resolver *)((char *)timeout - offsetof(struct resolver, timeout));

	ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	set_timeout(resolver);
}

static void on_socket(evutil_socket_t fd, short what, void *argument)
{
	/* The watch may be gone when c-ares comes back. */
	struct resolver *resolver = ((struct watch *)argument)->resolver;

	ares_process_fd(resolver->channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
		what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	set_timeout(resolver);
}

static struct watch *find_watch(struct resolver *resolver, ares_socket_t fd)
{
	struct watch *watch;

	LIST_FOREACH(watch, &resolver->watches, entry)
	if (watch->fd == fd)
		return watch;
	return NULL;
}

static struct watch *watch_new(struct resolver *resolver, ares_socket_t fd)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->resolver = resolver;
	watch->fd = fd;
	LIST_INSERT_HEAD(&resolver->watches, watch, entry);
	return watch;
}

/* c-ares wants to know of these things from now on; of nothing: it is about to close the socket. */
static void on_socket_state(void *argument, ares_socket_t fd, int readable, int writable)
{
	struct resolver *resolver = argument;
	struct watch *watch = find_watch(resolver, fd);
	const short what = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0));

	if (watch)
		event_del(&watch->event);
	else if (what != 0)
		watch = watch_new(resolver, fd);
	if (!watch)
		return;
	if (what == 0) {
		LIST_REMOVE(watch, entry);
		free(watch);
		return;
	}
	/* Whatever cannot be watched ends with c-ares' own timeout. */
	event_assign(&watch->event, resolver->loop->base, fd, (short)(what | EV_PERSIST),
		on_socket, watch);
	event_add(&watch->event, NULL);
}

/* --- answers ----------------------------------------------------------------------------- */

static union host_address *copy_addresses(const struct ares_addrinfo *found, size_t *count)
{
	union host_address *out;
	size_t n = 0;

	for (const struct ares_addrinfo_node *at = found->nodes; at; at = at->ai_next)
		n++;
	if (n > RESOLVER_ADDRESSES_MAX)
		n = RESOLVER_ADDRESSES_MAX;
	out = calloc(n ? n : 1, sizeof(*out));
	if (!out)
		return NULL;
	*count = 0;
	for (const struct ares_addrinfo_node *at = found->nodes; at && *count < n;
		at = at->ai_next)
		if (at->ai_addrlen <= sizeof(*out))
			memcpy(&out[(*count)++], at->ai_addr, at->ai_addrlen);
	return out;
}

static int keep_answer(struct resolver_name *name, const struct ares_addrinfo *found)
{
	size_t count;
	union host_address *addresses = copy_addresses(found, &count);

	if (!addresses)
		return ARES_ENOMEM;
	if (count == 0) {
		free(addresses);
		return ARES_ENODATA;
	}
	free(name->addresses);
	name->addresses = addresses;
	name->count = count;
	return ARES_SUCCESS;
}

static void answer_waiting(struct loop_task *task);

static void on_answer(void *argument, int status, int timeouts, struct ares_addrinfo *found)
{
	struct resolver_name *name = argument;
	struct resolver *resolver = name->resolver;
	usec_t life;

	(void)timeouts;
	name->asking = false;
	resolver->in_flight--;
	if (status == ARES_SUCCESS)
		status = found ? keep_answer(name, found) : ARES_ENODATA;
	if (found)
		ares_freeaddrinfo(found);
	if (resolver->ending)
		return;
	if (status != ARES_SUCCESS)
		log_write(
			LEVEL_WARNING, "DNS lookup failed: %s: result=%d", name->name, status);
	life = status == ARES_SUCCESS ? resolver->found_life : resolver->failed_life;
	name->status = status;
	name->expires = loop_now(resolver->loop) + life;
	loop_defer(resolver->loop, &name->task, answer_waiting);
}

static const union host_address *next_address(struct resolver_name *name)
{
	const size_t n = name->next % name->count;

	name->next = n + 1;
	return &name->addresses[n];
}

static socklen_t length_of(const union host_address *address)
{
	return address->any.sa_family == AF_INET ? sizeof(address->in) : sizeof(address->in6);
}

static void answer_one(struct resolver_name *name, struct resolver_query *query)
{
	union host_address address;

	TAILQ_REMOVE(&name->waiting, query, entry);
	query->name = NULL;
	if (name->status != ARES_SUCCESS) {
		query->answer(query, NULL, 0, name->status);
		return;
	}
	address = *next_address(name);
	query->others = (uint16_t)(name->count - 1);
	if (address.any.sa_family == AF_INET)
		address.in.sin_port = htons(query->port);
	else
		address.in6.sin6_port = htons(query->port);
	query->answer(query, &address.any, length_of(&address), RESOLVER_FOUND);
}

static size_t count_waiting(const struct resolver_name *name)
{
	const struct resolver_query *query;
	size_t n = 0;

	TAILQ_FOREACH (query, &name->waiting, entry)
		n++;
	return n;
}

/* Those who ask again from their callback have to wait for the next pass. */
static void answer_waiting(struct loop_task *task)
{
	struct resolver_name *name =
		(struct resolver_name *)((char *)task - offsetof(struct resolver_name, task));

	name->answering = true;
	for (size_t left = count_waiting(name); left > 0; left--) {
		struct resolver_query *query = TAILQ_FIRST(&name->waiting);

		if (!query)
			break;
		answer_one(name, query);
	}
	name->answering = false;
}

/* --- asking ------------------------------------------------------------------------------ */

static struct resolver_name *name_new(struct resolver *resolver, const char *text)
{
	const size_t size = strlen(text) + 1;
	struct resolver_name *name = calloc(1, sizeof(*name) + size);

	if (!name)
		return NULL;
	name->resolver = resolver;
	name->status = ARES_ENODATA;
	TAILQ_INIT(&name->waiting);
	memcpy(name->name, text, size);
	return name;
}

static void name_free(struct resolver_name *name)
{
	struct resolver_query *query;

	while ((query = TAILQ_FIRST(&name->waiting)) != NULL)
		resolver_cancel(query);
	loop_forget(name->resolver->loop, &name->task);
	free(name->addresses);
	free(name);
}

static void drop(struct resolver_name *name)
{
	struct resolver *resolver = name->resolver;

	HASH_DEL(resolver->names, name);
	TAILQ_REMOVE(&resolver->order, name, entry);
	resolver->count--;
	name_free(name);
}

static bool is_idle(const struct resolver_name *name)
{
	return !name->asking && !name->answering && TAILQ_EMPTY(&name->waiting) &&
		!loop_task_is_queued(&name->task);
}

/* Make room for one more name. */
static bool evict(struct resolver *resolver)
{
	struct resolver_name *name;

	if (resolver->count < resolver->count_max)
		return true;
	TAILQ_FOREACH (name, &resolver->order, entry) {
		if (is_idle(name)) {
			drop(name);
			return true;
		}
	}
	return false;
}

/* NULL: no room. */
static struct resolver_name *find_or_add(struct resolver *resolver, const char *text)
{
	const size_t length = strlen(text);
	struct resolver_name *name;

	HASH_FIND(hh, resolver->names, text, length, name);
	if (name) {
		TAILQ_REMOVE(&resolver->order, name, entry);
		TAILQ_INSERT_TAIL(&resolver->order, name, entry);
		return name;
	}
	if (length == 0 || length > RESOLVER_NAME_MAX || !evict(resolver))
		return NULL;
	name = name_new(resolver, text);
	if (!name)
		return NULL;
	HASH_ADD_KEYPTR(hh, resolver->names, name->name, length, name);
	if (name->unhashed) {
		name_free(name);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&resolver->order, name, entry);
	resolver->count++;
	return name;
}

static void look_up(struct resolver *resolver, struct resolver_name *name)
{
	const struct ares_addrinfo_hints hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};

	name->asking = true;
	resolver->in_flight++;
	/* The hosts file answers from inside this call. */
	ares_getaddrinfo(resolver->channel, name->name, NULL, &hints, on_answer, name);
	set_timeout(resolver);
}

void resolver_ask(struct resolver *resolver, struct resolver_query *query, const char *text,
	uint16_t port, resolver_function *answer)
{
	struct resolver_name *name = find_or_add(resolver, text);

	if (!name)
		name = resolver->refused;
	query->name = name;
	query->answer = answer;
	query->port = port;
	TAILQ_INSERT_TAIL(&name->waiting, query, entry);
	if (name->asking)
		return;
	if (name == resolver->refused || name->expires > loop_now(resolver->loop))
		loop_defer(resolver->loop, &name->task, answer_waiting);
	else if (!loop_task_is_queued(&name->task))
		look_up(resolver, name);
}

void resolver_cancel(struct resolver_query *query)
{
	if (!query->name)
		return;
	TAILQ_REMOVE(&query->name->waiting, query, entry);
	query->name = NULL;
}

socklen_t resolver_literal(const char *text, uint16_t port, struct sockaddr_storage *out)
{
	const struct addrinfo hints = {
		.ai_family = AF_INET6,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICHOST,
	};
	union host_address address = {.any.sa_family = AF_INET};
	struct addrinfo *found;

	if (inet_pton(AF_INET, text, &address.in.sin_addr) == 1) {
		address.in.sin_port = htons(port);
	} else {
		/* inet_pton() does not know zones. */
		if (!strchr(text, ':') || getaddrinfo(text, NULL, &hints, &found) != 0)
			return 0;
		address.in6 = *(const struct sockaddr_in6 *)found->ai_addr;
		address.in6.sin6_port = htons(port);
		freeaddrinfo(found);
	}
	memset(out, 0, sizeof(*out));
	memcpy(out, &address, sizeof(address));
	return length_of(&address);
}

/* --- the resolver itself ----------------------------------------------------------------- */

static int make_channel(struct resolver *resolver, const struct resolver_options *options)
{
	struct ares_options wanted = {
		.timeout = FIRST_TIMEOUT_MS,
		.tries = TRIES,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = resolver,
		.resolvconf_path = (char *)options->resolv_conf,
	};
	int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
	int status;

	if (options->resolv_conf && *options->resolv_conf) {
		if (access(options->resolv_conf, R_OK) != 0)
			log_write(LEVEL_WARNING, "cannot read resolv_conf: %s: %m",
				options->resolv_conf);
		mask |= ARES_OPT_RESOLVCONF;
	}
	status = ares_init_options(&resolver->channel, &wanted, mask);
	if (status != ARES_SUCCESS || !options->servers)
		return status;
	status = ares_set_servers_ports_csv(resolver->channel, options->servers);
	if (status != ARES_SUCCESS)
		ares_destroy(resolver->channel);
	return status;
}

struct resolver *resolver_new(
	struct loop *loop, const struct resolver_options *options, char *why, size_t size)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));
	int status = ARES_ENOMEM;

	if (!resolver)
		goto failed;
	resolver->loop = loop;
	resolver->timeout.expire = on_timeout;
	resolver->count_max = options->names_max;
	LIST_INIT(&resolver->watches);
	TAILQ_INIT(&resolver->order);
	resolver_set_lives(resolver, options->found_life, options->failed_life);
	resolver->refused = name_new(resolver, "");
	if (!resolver->refused)
		goto failed;
	resolver->refused->status = ARES_ENOMEM;
	status = ares_library_init(ARES_LIB_INIT_ALL);
	if (status != ARES_SUCCESS)
		goto failed;
	status = make_channel(resolver, options);
	if (status == ARES_SUCCESS)
		return resolver;
	ares_library_cleanup();
failed:
	snprintf(why, size, "dns setup failed: %s", ares_strerror(status));
	if (resolver)
		free(resolver->refused);
	free(resolver);
	return NULL;
}

void resolver_free(struct resolver *resolver)
{
	struct resolver_name *name, *next;

	if (!resolver)
		return;
	resolver->ending = true;
	ares_destroy(resolver->channel); /* calls on_answer() for what is in flight */
	ares_library_cleanup();
	wheel_remove(&resolver->loop->wheel, &resolver->timeout);
	TAILQ_FOREACH_SAFE (name, &resolver->order, entry, next)
		drop(name);
	name_free(resolver->refused);
	free(resolver);
}

void resolver_set_lives(struct resolver *resolver, usec_t found_life, usec_t failed_life)
{
	resolver->found_life = found_life;
	resolver->failed_life = failed_life;
}

/* --- SHOW -------------------------------------------------------------------------------- */

const struct resolver_name *resolver_next(
	const struct resolver *resolver, const struct resolver_name *after)
{
	return after ? TAILQ_NEXT(after, entry) : TAILQ_FIRST(&resolver->order);
}

struct resolver_row resolver_row_of(
	const struct resolver *resolver, const struct resolver_name *name)
{
	const usec_t left = name->expires - loop_now(resolver->loop);

	return (struct resolver_row){
		.name = name->name,
		.left = left > 0 ? left : 0,
		.addresses = name->status == ARES_SUCCESS ? name->count : 0,
	};
}

const struct sockaddr *resolver_row_address(
	const struct resolver_name *name, size_t n, socklen_t *length)
{
	if (name->status != ARES_SUCCESS || n >= name->count)
		return NULL;
	*length = length_of(&name->addresses[n]);
	return &name->addresses[n].any;
}

size_t resolver_names(const struct resolver *resolver)
{
	return resolver->count;
}

size_t resolver_in_flight(const struct resolver *resolver)
{
	return resolver->in_flight;
}
