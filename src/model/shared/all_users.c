/* SPDX-License-Identifier: ISC */
#include "model/shared/all_users.h"

#include <string.h>

#include "model/registry.h"

struct user_walk user_walk_begin(struct process *process)
{
	struct user_walk walk = {.process = process};
	struct registry *each;

	EACH_REGISTRY (each, process) {
		registry_sort_users(each);
		walk.next[each->number] = each->users;
	}
	return walk;
}

struct user *user_walk_next(struct user_walk *walk)
{
	const unsigned workers = walk->process->workers;
	struct user *first = NULL;

	for (unsigned i = 0; i < workers; i++) {
		if (walk->next[i] && (!first || strcmp(walk->next[i]->name, first->name) < 0))
			first = walk->next[i];
	}
	for (unsigned i = 0; first && i < workers; i++) {
		if (walk->next[i] && strcmp(walk->next[i]->name, first->name) == 0)
			walk->next[i] = walk->next[i]->by_name.next;
	}
	return first;
}

static void add(struct user_sums *sums, const struct user *user)
{
	sums->auto_pools += user->auto_pools;
	sums->has_pools |= !TAILQ_EMPTY(&user->pools);
	sums->forced |= user->forced;
}

struct user_sums all_users_sum(const struct process *process, const struct user *user)
{
	struct user_sums sums = {0};
	const struct registry *each;

	if (process->workers < 2) {
		add(&sums, user);
		return sums;
	}
	EACH_REGISTRY (each, process) {
		const struct user *own = registry_known_user(each, user->name);

		if (own)
			add(&sums, own);
	}
	return sums;
}

static bool is_first(const struct process *process, const struct user *user, unsigned number)
{
	for (unsigned i = 0; i < number; i++) {
		if (registry_known_user(process->registries[i], user->name))
			return false;
	}
	return true;
}

unsigned all_users_count(const struct process *process)
{
	unsigned count = registry_count_users(process->registries[0]);
	const struct registry *each;

	EACH_REGISTRY (each, process) {
		const struct user *user, *next;

		if (each->number == 0)
			continue;
		HASH_ITER (by_name, each->users, user, next)
			count += is_first(process, user, each->number);
	}
	return count;
}
