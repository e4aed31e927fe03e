/* SPDX-License-Identifier: ISC */
#include "model/shared/all_hosts.h"

#include "base/text.h"

/* A failure counts for so long after the time at which it was to be tried again. */
#define FAILURE_LIFE (60 * USEC_PER_SEC)

/* --- walking ------------------------------------------------------------------------------ */

static struct host *step(struct host_walk *walk)
{
	struct host *host = walk->next;

	if (!walk->has_begun)
		host = TAILQ_FIRST(&walk->process->registries[walk->number]->hosts);
	walk->has_begun = true;
	walk->next = host ? TAILQ_NEXT(host, in_hosts) : NULL;
	return host;
}

static bool is_known_before(
	const struct process *process, unsigned number, const struct host *host)
{
	for (unsigned i = 0; i < number; i++) {
		if (hosts_like(&process->registries[i]->hosts, host))
			return true;
	}
	return false;
}

struct host *host_walk_next(struct host_walk *walk)
{
	while (walk->number < walk->process->workers) {
		struct host *host = step(walk);

		if (!host) {
			walk->number++;
			walk->has_begun = false;
		} else if (!host->gone && !is_known_before(walk->process, walk->number, host)) {
			return host;
		}
	}
	return NULL;
}

struct host *all_hosts_first(const struct process *process, struct host *host)
{
	const struct registry *each;

	EACH_REGISTRY (each, process) {
		struct host *like = hosts_like(&each->hosts, host);

		if (like)
			return like;
	}
	return host;
}

/* --- putting together --------------------------------------------------------------------- */

/* When it was last told anything of its role. */
static usec_t told_at(const struct host *host)
{
	return host->told_at > host->role_since ? host->told_at : host->role_since;
}

static bool is_up(const struct host *host)
{
	return host->failed_since == 0 && (host->servers > 0 || host->connect_time > 0);
}

/* What the walk over the registries finds. */
struct found {
	const struct host *latest; /* was told of its role last */
	const struct host *failing; /* will be tried last; NULL: it is down in no registry */
	const struct host *answering; /* has logged in there; NULL: none has */
	struct server_link *watch;
	unsigned servers;
	bool is_up;
};

static struct found look(const struct process *process, const struct host *host)
{
	struct found found = {.latest = host};
	const struct registry *each;

	EACH_REGISTRY (each, process) {
		const struct host *own = hosts_like(&each->hosts, host);

		if (!own)
			continue;
		if (told_at(own) > told_at(found.latest))
			found.latest = own;
		if (own->failed_since > 0 &&
			(!found.failing || own->next_try > found.failing->next_try))
			found.failing = own;
		if (own->connect_time > 0 && !found.answering)
			found.answering = own;
		if (own->watch)
			found.watch = own->watch;
		found.servers += own->servers;
		found.is_up |= is_up(own);
	}
	return found;
}

/* Those with servers there have noticed the same change of its role, sooner or later. */
static void share_role(const struct process *process, struct host *view)
{
	const struct registry *each;

	EACH_REGISTRY (each, process) {
		const struct host *own = hosts_like(&each->hosts, view);

		if (!own || own->role != view->role)
			continue;
		view->superseded |= own->superseded;
		if (own->servers > 0 && own->role_since > 0 &&
			own->role_since < view->role_since)
			view->role_since = own->role_since;
	}
}

static void share_failure(struct host *view, const struct found *found, usec_t now)
{
	const struct host *failing = found->failing;

	view->failed_since = view->next_try = 0;
	view->failures = 0;
	view->error[0] = '\0';
	if (!failing || (found->is_up && now > failing->next_try + FAILURE_LIFE))
		return;
	view->failed_since = failing->failed_since;
	view->next_try = failing->next_try;
	view->failures = failing->failures;
	text_copy(view->error, sizeof(view->error), failing->error);
}

const struct host *all_hosts_view(
	const struct process *process, const struct host *host, union host_room *room)
{
	struct host *view = &room->host;
	struct found found;

	if (process->workers < 2)
		return host;
	found = look(process, host);
	*view = *found.latest;
	text_copy(view->name, sizeof(*room) - offsetof(struct host, name), host->name);
	view->number = host->number;
	view->servers = found.servers;
	view->watch = found.watch;
	if (view->connect_time == 0 && found.answering)
		view->connect_time = found.answering->connect_time;
	share_role(process, view);
	share_failure(view, &found, loop_now(process->registries[0]->loop));
	return view;
}
