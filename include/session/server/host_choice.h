/* SPDX-License-Identifier: ISC */
/*
 * Chooses, for a login, the next host of the database's list: one that may have the role that the pool
 * asks for, and answers, before others. Among equals the order is that of load_balance_hosts.
 */
#ifndef PGUSHER_SESSION_SERVER_HOST_CHOICE_H
#define PGUSHER_SESSION_SERVER_HOST_CHOICE_H

#include "model/registry.h"

/* The items of the list that a login has tried: all zeros at its begin. */
struct host_choice {
	uint32_t tried[DATABASE_HOSTS_LIMIT / 32];
	uint64_t
		addresses; /* of the present item's name, by their place in the answer of the DNS */
	unsigned count;
	unsigned last; /* valid if count: the index of the last one */
	bool answered; /* a host has answered: dead ones are not tried any more */
	bool role_refused; /* a server was given up for its role, which is a preference only */
	bool takes_any; /* the second round: the role does not matter */
};

/*
 * Choose an item of the list that was not tried. Returns its index, which counts as tried now; -1 if
 * none is left that is worth an attempt. Dead hosts come last, and are left to one login at a time.
 */
int host_choice_next(struct host_choice *choice, struct pool *pool);

/*
 * Choose an address of the present item's name that was not tried, beginning with `first`. Returns its
 * host, and the address in *address, owned by the resolver; NULL if none is left, or when out of memory.
 */
struct host *host_choice_address(struct host_choice *choice, const struct pool *pool,
	const struct sockaddr *first, const struct sockaddr **address, socklen_t *length);

/*
 * None is left. Returns whether a second round begins, since a server was given up that is better than
 * none: its role was no more than a preference.
 */
bool host_choice_again(struct host_choice *choice);

#endif
