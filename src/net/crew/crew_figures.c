/* SPDX-License-Identifier: ISC */
/* What the process wants to know of its threads, and where they run. */
#include <errno.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "net/crew/crew.h"
#include "net/crew/crew_parts.h"

static usec_t busy_time(const struct crew_member *member)
{
	struct timespec spent = {0};
	clockid_t clock;

	if (!member || member->index == 0)
		return loop_busy();
	if (!member->has_thread || pthread_getcpuclockid(member->thread, &clock) != 0 ||
		clock_gettime(clock, &spent) != 0)
		return member->busy;
	return spent.tv_sec * USEC_PER_SEC + spent.tv_nsec / 1000;
}

void crew_figures(const struct loop *loop, struct crew_figures *figures)
{
	const struct crew_member *member = loop->member;

	CHECK(crew_is_own(loop));
	*figures = (struct crew_figures){
		.turns = loop->turn,
		.mails = loop->mailbox.received,
		.busy = busy_time(member),
		.thread = member && member->id != 0 ? member->id : getpid(),
	};
	if (!member)
		return;
	figures->wake_ups = member->wake_ups;
	figures->stops = member->stops;
	figures->parked = member->parked_time;
	if (member->parked_since != 0)
		figures->parked += clock_monotonic() - member->parked_since;
}

int crew_processor(const struct loop *loop)
{
	const struct crew_member *member = loop->member;
	const pthread_t thread = member && member->has_thread ? member->thread : pthread_self();
	cpu_set_t set;

	CHECK(crew_is_own(loop));
	if (pthread_getaffinity_np(thread, sizeof(set), &set) != 0 || CPU_COUNT(&set) != 1)
		return -1;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set))
			return cpu;
	}
	return -1;
}

static void answer(struct mail *mail, struct loop *loop)
{
	struct ping *ping = (struct ping *)mail;

	(void)loop;
	/* Release: this thread is done with the mail when the main thread sends it again. */
	atomic_store_explicit(&ping->answered, true, memory_order_release);
}

bool crew_answers(struct crew *crew)
{
	bool all = true;

	if (!crew->running || crew->depth > 0)
		return true;
	for (unsigned i = 1; i < crew->count; i++) {
		struct ping *ping = &crew->members[i].ping;

		/* Acquire: pairs with answer(). */
		if (!atomic_load_explicit(&ping->answered, memory_order_acquire)) {
			all = false;
			continue;
		}
		/* Relaxed: mailbox_put() publishes it. */
		atomic_store_explicit(&ping->answered, false, memory_order_relaxed);
		ping->mail.deliver = answer;
		crew_post(crew->members[i].loop, &ping->mail);
	}
	return all;
}

bool crew_pin(struct crew *crew, unsigned index, int cpu)
{
	cpu_set_t set;
	int error = EINVAL;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (index < crew->count && crew->members[index].has_thread)
		error = pthread_setaffinity_np(crew->members[index].thread, sizeof(set), &set);
	errno = error;
	return error == 0;
}
