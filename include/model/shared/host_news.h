/* SPDX-License-Identifier: ISC */
/*
 * What one worker has learned of a host, sent to the others by mail: each registry knows hosts by
 * itself, and would otherwise find out by its own servers, probes and timeouts.
 *
 * Nothing is sent with one worker, nor for names, since each worker has its own resolver. What
 * cannot be sent, for want of memory, the others find out by themselves.
 */
#ifndef PGUSHER_MODEL_SHARED_HOST_NEWS_H
#define PGUSHER_MODEL_SHARED_HOST_NEWS_H

#include "model/host/hosts.h"
#include "model/registry.h"

/* The host as the sender knew it. */
struct host_news {
	usec_t at; /* the sender's loop_now(), on the clock that all loops share */
	enum host_role role;
	enum host_teller told_by; /* valid if the role is known */
	bool read_only;
	uint64_t system;
	uint32_t timeline;
	usec_t failed_since, next_try;
	unsigned failures;
	char error[HOST_ERROR_SIZE];
};

/* Runs at each other worker, with its own host; does not send these news on. May close servers. */
typedef void host_news_function(
	struct registry *registry, struct host *host, const struct host_news *news);

/*
 * Send what this registry knows of its host: take() is called at each other worker. A worker that does
 * not know the host yet makes it, unless it is an address of a name: only the worker's own resolver
 * adds those, since it also tells when the name has the address no longer. Mail of one worker arrives
 * in order.
 */
void host_news_send(
	const struct registry *registry, const struct host *host, host_news_function *take);

#endif
