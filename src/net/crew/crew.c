/* SPDX-License-Identifier: ISC */
#include "net/crew/crew.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "net/crew/crew_parts.h"

/* Enough for all that a turn does, and small enough for a process with limited memory. */
#define THREAD_STACK_SIZE ((size_t)1024 * 1024)

/* --- turns -------------------------------------------------------------------------------- */

/*
 * Promise to be woken, then look once more whether there is a reason not to wait. Both loads
 * and the store are sequentially consistent: see mailbox_rouse().
 */
static bool may_wait(struct crew_member *member)
{
	mailbox_fall_asleep(&member->loop->mailbox);
	/* It is the main thread that parks the others, so it may wait in stillness. */
	return member->index == 0 || !atomic_load(&member->crew->parking);
}

void crew_turn(struct loop *loop, bool wait)
{
	if (loop->member) {
		wait = wait && may_wait(loop->member);
		if (mailbox_has_new(&loop->mailbox))
			crew_queue_delivery(loop); /* the turn does not wait then */
	}
	loop_turn(loop, wait);
}

void crew_run(struct crew *crew)
{
	struct loop *loop = crew->members[0].loop;

	if (crew->count == 1)
		loop_run(loop);
	while (!loop->stopping)
		crew_turn(loop, true);
}

/* Stand still until the main thread releases this one. Returns false if it is to end then. */
static bool park(struct crew_member *member)
{
	struct crew *crew = member->crew;
	uint64_t round;
	bool ending;

	member->loop->now_known = false;
	member->stops++;
	member->parked_since = clock_monotonic();
	pthread_mutex_lock(&crew->lock);
	round = crew->round;
	if (++crew->parked == crew->threads)
		pthread_cond_signal(&crew->all_parked);
	while (crew->round == round)
		pthread_cond_wait(&crew->released, &crew->lock);
	ending = crew->ending;
	pthread_mutex_unlock(&crew->lock);
	member->loop->now_known = false;
	member->parked_time += clock_monotonic() - member->parked_since;
	member->parked_since = 0;
	return !ending;
}

static void *run_thread(void *argument)
{
	struct crew_member *member = argument;
	char name[16]; /* with its NUL, all that the kernel keeps */

	crew_here = member;
	member->id = gettid();
	(void)snprintf(name, sizeof(name), "pgusher-work-%u", member->index % 100);
	(void)pthread_setname_np(pthread_self(), name);
	do
		crew_turn(member->loop, true);
	while (!atomic_load(&member->crew->parking) || park(member));
	member->busy = loop_busy();
	return NULL;
}

/* --- stillness ---------------------------------------------------------------------------- */

/* Deliver all mail of all loops, and what the deliveries send. All loops are the caller's. */
static void settle(struct crew *crew)
{
	bool any;

	do {
		any = false;
		for (unsigned i = 0; i < crew->count; i++)
			any |= crew_deliver(crew->members[i].loop);
	} while (any);
}

static void gather(struct crew *crew)
{
	atomic_store(&crew->parking, true); /* sequentially consistent: see may_wait() */
	for (unsigned i = 1; i < crew->count; i++)
		crew_rouse(crew->members[i].loop);
	pthread_mutex_lock(&crew->lock);
	while (crew->parked < crew->threads)
		pthread_cond_wait(&crew->all_parked, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
}

static void release(struct crew *crew, bool ending)
{
	pthread_mutex_lock(&crew->lock);
	atomic_store(&crew->parking, false);
	crew->parked = 0;
	crew->round++;
	crew->ending = ending;
	pthread_cond_broadcast(&crew->released);
	pthread_mutex_unlock(&crew->lock);
}

void crew_still(struct crew *crew)
{
	const bool is_outermost = crew->depth++ == 0;

	CHECK(crew_is_own(crew->members[0].loop));
	if (is_outermost && crew->running)
		gather(crew);
	crew->still = true;
	for (unsigned i = 1; i < crew->count; i++)
		crew->members[i].loop->now_known = false;
	/* Only the outermost caller expects that mail changes what it has. */
	if (is_outermost)
		settle(crew);
}

void crew_resume(struct crew *crew)
{
	CHECK(crew->depth > 0);
	if (--crew->depth > 0)
		return;
	crew->still = false;
	if (crew->running)
		release(crew, false);
}

bool crew_is_still(const struct crew *crew)
{
	return crew->still;
}

/* --- start and stop ----------------------------------------------------------------------- */

static bool init_member(struct crew_member *member)
{
	struct loop *loop = member->loop;

	member->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (member->wake < 0)
		return false;
	member->event =
		event_new(loop->base, member->wake, EV_READ | EV_PERSIST, crew_on_wake, member);
	if (!member->event || event_add(member->event, NULL) != 0)
		return false;
	loop->member = member;
	return true;
}

bool crew_init(struct crew *crew, struct loop *const loops[], unsigned count)
{
	*crew = (struct crew){0};
	crew->members = calloc(count, sizeof(crew->members[0]));
	if (!crew->members)
		return false;
	crew->count = count;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->all_parked, NULL);
	pthread_cond_init(&crew->released, NULL);
	for (unsigned i = 0; i < count; i++)
		crew->members[i] = (struct crew_member){
			.crew = crew,
			.loop = loops[i],
			.index = i,
			.wake = -1,
			.ping.answered = true,
		};
	for (unsigned i = 0; count > 1 && i < count; i++) {
		if (init_member(&crew->members[i]))
			continue;
		crew_free(crew);
		return false;
	}
	return true;
}

void crew_free(struct crew *crew)
{
	CHECK(!crew->running);
	for (unsigned i = 0; i < crew->count; i++) {
		struct crew_member *member = &crew->members[i];

		member->loop->member = NULL;
		if (member->event)
			event_free(member->event);
		if (member->wake >= 0)
			close(member->wake);
	}
	pthread_cond_destroy(&crew->released);
	pthread_cond_destroy(&crew->all_parked);
	pthread_mutex_destroy(&crew->lock);
	free(crew->members);
	crew->members = NULL;
	crew->count = 0;
}

/* Returns an error number. The new thread blocks all signals: the main thread handles them. */
static int start_thread(struct crew *crew, struct crew_member *member)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, THREAD_STACK_SIZE);
	error = pthread_create(&member->thread, &attributes, run_thread, member);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	member->has_thread = error == 0;
	crew->threads += error == 0;
	return error;
}

bool crew_start(struct crew *crew)
{
	int error = 0;

	CHECK(!crew->running && crew->depth == 0);
	crew->members[0].thread = pthread_self();
	crew->members[0].has_thread = true;
	if (crew->count == 1)
		return true;
	crew_here = &crew->members[0];
	crew->running = true;
	for (unsigned i = 1; i < crew->count && error == 0; i++)
		error = start_thread(crew, &crew->members[i]);
	if (error == 0)
		return true;
	crew_stop(crew);
	errno = error;
	return false;
}

/* The threads are parked. */
static void end_threads(struct crew *crew)
{
	release(crew, true);
	for (unsigned i = 1; i <= crew->threads; i++) {
		pthread_join(crew->members[i].thread, NULL);
		crew->members[i].has_thread = false;
	}
	crew->threads = 0;
	crew->running = false;
	crew_here = NULL;
}

void crew_stop(struct crew *crew)
{
	crew_still(crew);
	settle(crew); /* a nested call has delivered nothing */
	if (crew->running)
		end_threads(crew);
	crew_resume(crew);
}
