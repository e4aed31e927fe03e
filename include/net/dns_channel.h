/* SPDX-License-Identifier: ISC */
/*
 * DNS queries: c-ares on the event loop.
 *
 * c-ares reads resolv.conf only when it makes a channel. This module makes a new channel when
 * the file has changed, and repeats the questions in flight on it. It checks the file when a
 * question is asked and while questions are in flight, at most once a second. It caches no
 * answers: net/resolver does.
 */
#ifndef PGUSHER_NET_DNS_CHANNEL_H
#define PGUSHER_NET_DNS_CHANNEL_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/loop.h"

struct ares_addrinfo;
struct dns_channel;
struct dns_question;

enum dns_kind {
	DNS_ADDRESSES, /* IPv4 and IPv6 addresses of a name, also from the hosts file */
	DNS_SERIAL, /* the serial number in the SOA record of a zone */
};

struct dns_answer {
	int status; /* ARES_SUCCESS, or the error of c-ares: the other fields are empty then */
	struct ares_addrinfo *addresses; /* the callback frees them with ares_freeaddrinfo() */
	uint32_t serial;
};

/*
 * Called once for each question, possibly from inside dns_channel_ask(). The callback may free
 * or reuse the question and ask others; it must not call dns_channel_check() or
 * dns_channel_renew().
 */
typedef void dns_function(struct dns_question *question, const struct dns_answer *answer);

/* A question, embedded in its caller's struct; all zero at first. Not to be freed in flight. */
struct dns_question {
	LIST_ENTRY(dns_question) entry;
	struct dns_channel *channel; /* NULL: not in flight */
	enum dns_kind kind;
	const char *name; /* owned by the caller, and unchanged until the answer */
	dns_function *answered;
};

struct dns_channel_options {
	const char *resolv_conf; /* replaces /etc/resolv.conf; NULL or empty: that file */
	const char *servers; /* `ADDRESS[:PORT],...` in place of its name servers; or NULL */
	/* Called after a new channel was made: answers may differ from now on. May be NULL. */
	void (*renewed)(void *argument);
	void *argument;
};

/*
 * Make a channel on this loop, which must outlive it. The texts of the options are copied.
 * Returns NULL on failure, with the error of c-ares in `status`.
 */
struct dns_channel *dns_channel_new(
	struct loop *loop, const struct dns_channel_options *options, int *status);

/* Free the channel. Questions in flight end without an answer. NULL is allowed. */
void dns_channel_free(struct dns_channel *channel);

/*
 * Ask about this name, which must stay valid and unchanged until the answer. The question must
 * not be in flight. `answered` is called once; the hosts file answers from inside this call.
 */
void dns_channel_ask(struct dns_channel *channel, struct dns_question *question,
	enum dns_kind kind, const char *name, dns_function *answered);

/*
 * Make a new channel if resolv.conf has changed. Does nothing within a second of the last
 * check.
 */
void dns_channel_check(struct dns_channel *channel);

/*
 * Make a new channel from resolv.conf as it is now, and repeat the questions in flight on it.
 * On failure the old channel stays in use and a warning is logged.
 */
void dns_channel_renew(struct dns_channel *channel);

/* Returns the number of questions in flight. */
size_t dns_channel_asked(const struct dns_channel *channel);

#endif
