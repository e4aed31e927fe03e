/* SPDX-License-Identifier: ISC */
/*
 * Questions to name servers: c-ares on our loop.
 *
 * c-ares reads resolv.conf once, when a channel is made. This one is made anew when that file has
 * changed, which is looked at when something is asked and while answers are waited for, at most
 * once a second; what is under way is then asked again. Nothing is kept here: see net/resolver.
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
	DNS_ADDRESSES, /* of both families; the hosts file is honoured */
	DNS_SERIAL, /* that the zone's SOA record has */
};

/* Addresses belong to who is told, who frees them with ares_freeaddrinfo(). */
struct dns_answer {
	int status; /* ARES_SUCCESS, or why there is nothing else in here */
	struct ares_addrinfo *addresses;
	uint32_t serial;
};

/*
 * Called once for each question, perhaps from inside dns_channel_ask(). More may be asked from
 * here, but dns_channel_check() and dns_channel_renew() not called.
 */
typedef void dns_function(struct dns_question *question, const struct dns_answer *answer);

/* Embedded in who asks; all zero at first. It must not be freed while it is asked. */
struct dns_question {
	LIST_ENTRY(dns_question) entry;
	struct dns_channel *channel; /* NULL: not asked */
	enum dns_kind kind;
	const char *name; /* the asker's, until it is answered */
	dns_function *answered;
};

struct dns_channel_options {
	const char *resolv_conf; /* instead of /etc/resolv.conf; NULL or empty: that */
	const char *servers; /* `ADDRESS[:PORT],...` instead of its name servers; NULL: those */
	/* The channel was made anew: other servers may give other answers. May be NULL. */
	void (*renewed)(void *argument);
	void *argument;
};

/* The texts are copied. NULL, with a status of c-ares, when that or memory fails. */
struct dns_channel *dns_channel_new(
	struct loop *loop, const struct dns_channel_options *options, int *status);

/* Give up what is asked: nobody is told. NULL is fine. */
void dns_channel_free(struct dns_channel *channel);

/* Ask for this name, which stays where it is until the answer comes. */
void dns_channel_ask(struct dns_channel *channel, struct dns_question *question,
	enum dns_kind kind, const char *name, dns_function *answered);

/* Make the channel anew if resolv.conf has changed since. */
void dns_channel_check(struct dns_channel *channel);

/* Make the channel anew. If that fails the old one stays, which is a warning in the log. */
void dns_channel_renew(struct dns_channel *channel);

/* How many questions wait for their answers. */
size_t dns_channel_asked(const struct dns_channel *channel);

#endif
