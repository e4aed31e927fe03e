/* SPDX-License-Identifier: ISC */
#include "model/host/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "model/server_link.h"

/* The pause between two attempts at a dead host: doubled with each failure. */
#define PAUSE_LEAST USEC_PER_SEC
#define PAUSE_MOST (30 * USEC_PER_SEC)

/* --- the list ----------------------------------------------------------------------------- */

bool host_is_of(const struct host *host, const struct host_item *item)
{
	return host->port == item->port && !host->gone &&
		strncmp(host->name, item->name, item->length) == 0 &&
		host->name[item->length] == '\0';
}

/* The ports may differ: that of a name's address is not known. */
static bool is_at(const struct host *host, const struct address *address)
{
	struct address same_port;

	if (!address)
		return host->address.family == AF_UNSPEC;
	same_port = *address;
	same_port.port = host->address.port;
	return address_equal(&host->address, &same_port);
}

/* FNV-1a: names are the configuration's. */
static unsigned bucket_of(const char *name, size_t length, uint16_t port)
{
	uint32_t hash = 2166136261u ^ port;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)name[i]) * 16777619u;
	return hash % HOST_BUCKETS;
}

/* Where the pointer is that points at the host, or the NULL at the end of its bucket. */
static struct host **place_in_bucket(struct host_list *hosts, const struct host *host)
{
	struct host **at =
		&hosts->buckets[bucket_of(host->name, strlen(host->name), host->port)];

	while (*at && *at != host)
		at = &(*at)->next_in_bucket;
	return at;
}

static void drop(struct host_list *hosts, struct host *host)
{
	resolver_cancel(&host->lookup);
	*place_in_bucket(hosts, host) = host->next_in_bucket;
	TAILQ_REMOVE(hosts, host, in_hosts);
	free(host);
}

/* Returns the primary of the host's system, if it has told how far it is; else NULL. */
static const struct host *primary_of(const struct host_list *hosts, const struct host *host)
{
	const struct host *each;

	TAILQ_FOREACH (each, hosts, in_hosts) {
		if (each->role == HOST_ROLE_PRIMARY && !each->superseded &&
			each->progress.known && each->system == host->system &&
			each->failed_since == 0)
			return each;
	}
	return NULL;
}

struct host *hosts_find(const struct host_list *hosts, const struct host_item *item,
	const struct address *address)
{
	struct host *host = NULL;

	while ((host = hosts_next(hosts, item, host)) != NULL) {
		if (is_at(host, address))
			return host;
	}
	return NULL;
}

struct host *hosts_open(
	struct host_list *hosts, const struct host_item *item, const struct address *address)
{
	struct host *host = hosts_find(hosts, item, address);

	if (host)
		return host;
	host = calloc(1, sizeof(*host) + item->length + 1);
	if (!host)
		return NULL;
	memcpy(host->name, item->name, item->length);
	host->port = item->port;
	host->number = SHARED_NEXT(*hosts->last);
	if (address)
		host->address = *address;
	*place_in_bucket(hosts, host) = host;
	TAILQ_INSERT_TAIL(hosts, host, in_hosts);
	return host;
}

struct host *hosts_like(const struct host_list *hosts, const struct host *host)
{
	const struct host_item item = {host->name, strlen(host->name), host->port};
	const bool is_address = host->address.family != AF_UNSPEC;

	return hosts_find(hosts, &item, is_address ? &host->address : NULL);
}

struct host *hosts_next(
	const struct host_list *hosts, const struct host_item *item, const struct host *after)
{
	struct host *host = after
		? after->next_in_bucket
		: hosts->buckets[bucket_of(item->name, item->length, item->port)];

	while (host && !host_is_of(host, item))
		host = host->next_in_bucket;
	return host;
}

static void compare(struct host *standby, const struct host *primary)
{
	struct host_progress *progress = &standby->progress;
	const uint64_t end = primary ? primary->progress.position : progress->received;

	if (progress->known)
		progress->behind = end > progress->position ? end - progress->position : 0;
}

void hosts_compare_progress(const struct host_list *hosts, struct host *host)
{
	const struct host *primary = primary_of(hosts, host);
	struct host *each;

	if (host->role == HOST_ROLE_STANDBY) {
		compare(host, primary);
		return;
	}
	TAILQ_FOREACH (each, hosts, in_hosts) {
		if (each->role == HOST_ROLE_STANDBY && each->system == host->system)
			compare(each, primary);
	}
}

void hosts_leave(struct host_list *hosts, const char *name, const struct address *address)
{
	struct host *host;

	TAILQ_FOREACH (host, hosts, in_hosts) {
		if (!host->is_name && strcmp(host->name, name) == 0 && is_at(host, address))
			host->gone = true;
	}
}

void hosts_sweep(struct host_list *hosts)
{
	struct host *host, *next;

	TAILQ_FOREACH_SAFE (host, hosts, in_hosts, next) {
		if (host->gone && host->servers == 0)
			drop(hosts, host);
	}
}

void hosts_prune(struct host_list *hosts)
{
	struct host *host, *next;

	TAILQ_FOREACH_SAFE (host, hosts, in_hosts, next) {
		if (host->servers == 0 && !host->listed)
			drop(hosts, host);
	}
}

void hosts_free(struct host_list *hosts)
{
	struct host *host;

	TAILQ_FOREACH (host, hosts, in_hosts)
		host->listed = false;
	hosts_prune(hosts);
}

/* --- one host ----------------------------------------------------------------------------- */

void host_use(struct server_link *server, struct host *host)
{
	struct host *before = server->at;

	server->at = host;
	if (host)
		host->servers++;
	if (host && host->failed_since > 0 && !host->prober)
		host->prober = server;
	if (!before)
		return;
	before->servers--;
	if (before->prober == server && before != host)
		before->prober = NULL;
}

bool host_set_role(struct host *host, enum host_role role, enum host_teller teller, usec_t now)
{
	if (host->role == role)
		return false;
	host->role = role;
	host->told_by = teller;
	host->role_since = now;
	host->superseded = false;
	host->timeline = 0;
	return true;
}

void host_answered(struct host *host, usec_t took)
{
	host->failed_since = 0;
	host->failures = 0;
	host->prober = NULL;
	if (took > 0)
		host->connect_time = took;
	host->error[0] = '\0';
}

/* A quarter more or less, so that many processes do not try at once. */
static usec_t pause_of(const struct host *host, struct random *random)
{
	usec_t pause = PAUSE_LEAST;
	uint32_t drawn;

	for (unsigned i = 1; i < host->failures && pause < PAUSE_MOST; i++)
		pause *= 2;
	pause = pause < PAUSE_MOST ? pause : PAUSE_MOST;
	random_fill(random, &drawn, sizeof(drawn));
	return pause * 3 / 4 + (usec_t)(drawn % (uint64_t)(pause / 2));
}

void host_failed(struct host *host, const char *error, usec_t now, struct random *random)
{
	if (host->failed_since == 0)
		host->failed_since = now;
	host->failures++;
	host->next_try = now + pause_of(host, random);
	snprintf(host->error, sizeof(host->error), "%s", error);
}

bool host_is_avoided(const struct host *host, usec_t now)
{
	return host->failed_since > 0 && (host->prober || now < host->next_try);
}

const char *host_text(const struct host *host, char out[HOST_TEXT_SIZE])
{
	char address[ADDRESS_TEXT_SIZE];

	if (host->address.family == AF_UNSPEC)
		snprintf(out, HOST_TEXT_SIZE, "%.255s:%u", host->name, host->port);
	else
		snprintf(out, HOST_TEXT_SIZE, "%.255s (%s):%u", host->name,
			address_host(&host->address, address), host->port);
	return out;
}

const char *host_teller_name(const struct host *host)
{
	static const char *const names[] = {
		[HOST_TOLD_BY_LOGIN] = "login",
		[HOST_TOLD_BY_REPORT] = "report",
		[HOST_TOLD_BY_PROBE] = "probe",
	};

	return names[host->told_by];
}

const char *host_role_name(const struct host *host)
{
	static const char *const names[] = {
		[HOST_ROLE_UNKNOWN] = "unknown",
		[HOST_ROLE_PRIMARY] = "primary",
		[HOST_ROLE_STANDBY] = "standby",
	};

	return names[host->role];
}
