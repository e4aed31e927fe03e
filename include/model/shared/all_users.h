/* SPDX-License-Identifier: ISC */
/*
 * The users of all workers, each name once: a registry has its own object for a user whose pools or
 * clients are at home there. To be called by the first worker between process_stop_others() and
 * process_let_others_run(), or before the others run.
 */
#ifndef PGUSHER_MODEL_SHARED_ALL_USERS_H
#define PGUSHER_MODEL_SHARED_ALL_USERS_H

#include "model/process.h"
#include "model/user.h"

/* What the objects of one name come to, besides user_servers() and user_clients(). */
struct user_sums {
	unsigned auto_pools; /* pools with pool_size = auto: see session/pool/auto_size */
	bool has_pools, forced;
};

/* A walk over all names, in their order. No user may be made or freed meanwhile. */
struct user_walk {
	const struct process *process;
	struct user *next[WORKERS_MOST]; /* of each registry; NULL: no more */
};

struct user_walk user_walk_begin(struct process *process);

/* Returns the user of the first registry that has the next name; NULL after the last one. */
struct user *user_walk_next(struct user_walk *walk);

/* Sum over the users of this one's name. */
struct user_sums all_users_sum(const struct process *process, const struct user *user);

/* Returns the number of names. */
unsigned all_users_count(const struct process *process);

#endif
