/* SPDX-License-Identifier: ISC */
#include "net/helper.h"

#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/log.h"

/* Enough for PAM modules and LDAP, and small enough for a process with limited memory. */
#define THREAD_STACK_SIZE ((size_t)1024 * 1024)

TAILQ_HEAD(job_list, helper_job);

struct helper_thread {
	struct helper *helper;
	pthread_t id;
	bool busy; /* running a job; under the helper's lock */
	bool detached; /* it was busy in helper_leave(), and is not joined */
};

struct helper {
	struct event *event;
	int wake; /* eventfd: written when a job is added to an empty `finished` */
	size_t pending, jobs_max; /* used by the loop's thread only */
	unsigned started, threads_max; /* used by the loop's thread only */

	pthread_mutex_t lock; /* protects all that follows */
	pthread_cond_t more; /* `waiting` or `stopping` has changed */
	struct job_list waiting, finished;
	unsigned users; /* running threads, and helper_leave() */
	bool stopping;
	bool left; /* helper_leave() was called: the last user frees the helper */
	struct helper_thread threads[];
};

static void finish(struct helper *helper, struct helper_job *job)
{
	const uint64_t one = 1;
	const bool wake = TAILQ_EMPTY(&helper->finished);

	TAILQ_INSERT_TAIL(&helper->finished, job, entry);
	if (wake && write(helper->wake, &one, sizeof(one)) < 0)
		log_write(LEVEL_ERROR, "helper thread cannot wake the loop: %m");
}

/* After helper_leave() no loop calls done(): this thread does, so that the job is freed. */
static void finish_here(struct helper *helper, struct helper_job *job)
{
	pthread_mutex_unlock(&helper->lock);
	job->cancelled = true;
	job->done(job);
	pthread_mutex_lock(&helper->lock);
}

static void destroy(struct helper *helper)
{
	close(helper->wake);
	pthread_cond_destroy(&helper->more);
	pthread_mutex_destroy(&helper->lock);
	free(helper);
}

/* Called with the lock held; releases it. */
static void drop_user(struct helper *helper)
{
	const bool last = --helper->users == 0 && helper->left;

	pthread_mutex_unlock(&helper->lock);
	if (last)
		destroy(helper);
}

/* Returns NULL when no job waits. */
static struct helper_job *take_next(struct helper *helper)
{
	struct helper_job *job = TAILQ_FIRST(&helper->waiting);

	if (job)
		TAILQ_REMOVE(&helper->waiting, job, entry);
	return job;
}

/* Called with the lock held; releases it while the job runs. */
static void work(struct helper_thread *thread, struct helper_job *job)
{
	struct helper *helper = thread->helper;

	thread->busy = true;
	pthread_mutex_unlock(&helper->lock);
	job->work(job);
	pthread_mutex_lock(&helper->lock);
	if (helper->left)
		finish_here(helper, job);
	else
		finish(helper, job);
	thread->busy = false;
}

static void *run_thread(void *argument)
{
	struct helper_thread *thread = argument;
	struct helper *helper = thread->helper;

	/* The thread that has started this one may be bound to a core, which it needs itself. */
	cores_unbind();
	pthread_mutex_lock(&helper->lock);
	while (!helper->stopping) {
		struct helper_job *job = take_next(helper);

		if (job)
			work(thread, job);
		else
			pthread_cond_wait(&helper->more, &helper->lock);
	}
	drop_user(helper);
	return NULL;
}

static void end_jobs(struct helper *helper, struct job_list *jobs, bool cancelled)
{
	struct helper_job *job;

	while ((job = TAILQ_FIRST(jobs)) != NULL) {
		TAILQ_REMOVE(jobs, job, entry);
		helper->pending--;
		job->cancelled = cancelled;
		job->done(job);
	}
}

static void on_finished(evutil_socket_t fd, short what, void *argument)
{
	struct helper *helper = argument;
	struct job_list batch = TAILQ_HEAD_INITIALIZER(batch);
	uint64_t count;

	(void)what;
	/* A read that fails is a spurious event: `finished` is empty then. */
	if (read(fd, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&helper->lock);
	TAILQ_CONCAT(&batch, &helper->finished, entry);
	pthread_mutex_unlock(&helper->lock);
	end_jobs(helper, &batch, false);
}

struct helper *helper_new(struct loop *loop, unsigned threads, size_t jobs_max)
{
	struct helper *helper =
		calloc(1, sizeof(*helper) + threads * sizeof(helper->threads[0]));

	if (!helper)
		return NULL;
	helper->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (helper->wake < 0)
		goto no_descriptor;
	helper->event =
		event_new(loop->base, helper->wake, EV_READ | EV_PERSIST, on_finished, helper);
	if (!helper->event)
		goto no_event;
	if (event_add(helper->event, NULL) != 0)
		goto not_added;
	helper->threads_max = threads;
	helper->jobs_max = jobs_max;
	TAILQ_INIT(&helper->waiting);
	TAILQ_INIT(&helper->finished);
	pthread_mutex_init(&helper->lock, NULL);
	pthread_cond_init(&helper->more, NULL);
	return helper;
not_added:
	event_free(helper->event);
no_event:
	close(helper->wake);
no_descriptor:
	free(helper);
	return NULL;
}

/* No job begins from now on. */
static void stop(struct helper *helper)
{
	helper->jobs_max = 0; /* done() cannot submit another job */
	pthread_mutex_lock(&helper->lock);
	helper->stopping = true;
	pthread_cond_broadcast(&helper->more);
	pthread_mutex_unlock(&helper->lock);
}

/* Detach the threads that run a job, and return their number. The lock is held. */
static unsigned detach_busy(struct helper *helper)
{
	unsigned count = 0;

	for (unsigned i = 0; i < helper->started; i++) {
		struct helper_thread *thread = &helper->threads[i];

		thread->detached = thread->busy;
		if (!thread->detached)
			continue;
		pthread_detach(thread->id);
		count++;
	}
	return count;
}

/* Wait for the other threads, which end at once. */
static void join(struct helper *helper)
{
	for (unsigned i = 0; i < helper->started; i++)
		if (!helper->threads[i].detached)
			pthread_join(helper->threads[i].id, NULL);
}

unsigned helper_leave(struct helper *helper)
{
	struct job_list left = TAILQ_HEAD_INITIALIZER(left);
	unsigned busy;

	if (!helper)
		return 0;
	stop(helper);
	event_free(helper->event);
	pthread_mutex_lock(&helper->lock);
	helper->left = true;
	helper->users++; /* this function, until it returns */
	busy = detach_busy(helper);
	TAILQ_CONCAT(&left, &helper->finished, entry);
	TAILQ_CONCAT(&left, &helper->waiting, entry);
	pthread_mutex_unlock(&helper->lock);
	join(helper);
	end_jobs(helper, &left, true);
	pthread_mutex_lock(&helper->lock);
	drop_user(helper);
	return busy;
}

/* The new thread blocks all signals: the event loop handles them. */
static bool start_thread(struct helper *helper)
{
	struct helper_thread *thread = &helper->threads[helper->started];
	pthread_attr_t attributes;
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, THREAD_STACK_SIZE);
	pthread_mutex_lock(&helper->lock);
	helper->users++;
	pthread_mutex_unlock(&helper->lock);
	thread->helper = helper;
	error = pthread_create(&thread->id, &attributes, run_thread, thread);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error == 0) {
		helper->started++;
	} else {
		pthread_mutex_lock(&helper->lock);
		drop_user(helper);
	}
	return error == 0;
}

bool helper_submit(struct helper *helper, struct helper_job *job)
{
	if (helper->pending >= helper->jobs_max)
		return false;
	if (helper->started == 0 && !start_thread(helper))
		return false;
	helper->pending++;
	job->cancelled = false;
	pthread_mutex_lock(&helper->lock);
	TAILQ_INSERT_TAIL(&helper->waiting, job, entry);
	pthread_cond_signal(&helper->more);
	pthread_mutex_unlock(&helper->lock);
	/* A failure is harmless: at least one thread runs. */
	if (helper->pending > helper->started && helper->started < helper->threads_max)
		(void)start_thread(helper);
	return true;
}

size_t helper_pending(const struct helper *helper)
{
	return helper->pending;
}
