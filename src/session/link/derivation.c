/* SPDX-License-Identifier: ISC */
/*
 * A derivation waits in the queue, or a slice of it is submitted to the helper. Only few slices
 * are submitted at a time, so that the queue decides what runs next, not the helper's.
 */
#include "session/link/derivation.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "crypt/scram_derivation.h"

enum {
	/* Iterations until a running slice looks whether it has to stop. */
	CHECK_ITERATIONS = 1024,
	/* So many times in a slice: keys of a common secret (4096 iterations) take one slice. */
	SLICE_CHECKS = 4,
	/* Slices submitted for each thread: it need not wait for the loop between two of them. */
	SLICES_EACH = 3,
	/* Part of the queue that one user, address or server may have. */
	SHARE = 4,
};

enum lane { LANE_USERS, LANE_ADDRESSES, LANE_SERVERS };

/* Servers have every other turn, for clients wait for them too. */
static const uint8_t turns[] = {LANE_SERVERS, LANE_USERS, LANE_SERVERS, LANE_ADDRESSES};

struct derivation {
	struct helper_job job; /* the slice */
	struct fair_entry entry;
	TAILQ_ENTRY(derivation) in_all;
	struct registry *registry;
	struct derivation_owner owner;
	derivation_function *done;
	bool submitted; /* a slice of it is */

	/* For the slice that runs. */
	atomic_bool stop;
	struct scram_secret parameters;
	struct scram_derivation *work; /* NULL: not begun */
	enum scram_progress progress;
	struct scram_keys keys;
	usec_t took;
	char password[];
};

static struct derivation *derivation_of(struct fair_entry *entry)
{
	return (struct derivation *)((char *)entry - offsetof(struct derivation, entry));
}

/* --- on a thread -------------------------------------------------------------------------- */

/* Returns false when the derivation has ended. */
static bool run_some(struct derivation *derivation)
{
	if (!derivation->work)
		derivation->work = scram_derivation_new(derivation->password,
			derivation->parameters.salt, derivation->parameters.salt_length,
			derivation->parameters.iterations);
	derivation->progress = derivation->work
		? scram_derivation_run(derivation->work, CHECK_ITERATIONS, &derivation->keys)
		: SCRAM_DERIVATION_FAILED;
	return derivation->progress == SCRAM_DERIVATION_UNFINISHED;
}

static void run_slice(struct helper_job *job)
{
	struct derivation *derivation = (struct derivation *)job;
	const usec_t start = clock_monotonic();

	for (unsigned i = 0; i < SLICE_CHECKS && !atomic_load(&derivation->stop); i++)
		if (!run_some(derivation))
			break;
	derivation->took += clock_monotonic() - start;
}

/* --- sources ------------------------------------------------------------------------------ */

static uint64_t hash_text(struct registry *registry, const char *text)
{
	return keyed_hash_of(&registry->name_hash, text, strlen(text));
}

static bool join_as_client(struct derivations *all, struct derivation *derivation,
	const struct client_link *client)
{
	struct registry *registry = derivation->registry;
	const struct address source = address_source(&client->link.remote);
	char host[ADDRESS_TEXT_SIZE];

	return fair_queue_join(&all->waiting, &derivation->entry, LANE_USERS,
		       hash_text(registry, client->user->name), all->most / SHARE) &&
		fair_queue_join(&all->waiting, &derivation->entry, LANE_ADDRESSES,
			hash_text(registry, address_host(&source, host)), all->most / SHARE);
}

/* The port of a server counts, unlike that of a client, which is another for each connection. */
static bool join_as_server(
	struct derivations *all, struct derivation *derivation, const struct link *server)
{
	char address[ADDRESS_TEXT_SIZE];

	return fair_queue_join(&all->waiting, &derivation->entry, LANE_SERVERS,
		hash_text(derivation->registry, address_text(&server->remote, address)),
		all->most / SHARE);
}

static bool join(struct derivations *all, struct derivation *derivation)
{
	struct link *link = derivation->owner.link;

	return link->kind == LINK_CLIENT ? join_as_client(all, derivation, client_of(link))
					 : join_as_server(all, derivation, link);
}

/* --- the end of a derivation -------------------------------------------------------------- */

/* Wipe and free the memory of a derivation that is in no list. */
static void free_derivation(struct derivation *derivation)
{
	scram_derivation_free(derivation->work);
	explicit_bzero(derivation->password, strlen(derivation->password));
	explicit_bzero(&derivation->keys, sizeof(derivation->keys));
	free(derivation);
}

/* Release all that it holds on the loop; its memory stays, since a slice of it may run. */
static void release(struct derivation *derivation)
{
	struct derivations *all = derivation->registry->derivations;

	if (derivation->owner.handle)
		*derivation->owner.handle = NULL;
	fair_queue_leave(&derivation->entry);
	TAILQ_REMOVE(&all->all, derivation, in_all);
	all->pending--;
	user_keys_unref(derivation->owner.into);
}

/* Keep the maximum, which decays slowly. */
static void update_longest(struct registry *registry, usec_t took)
{
	enum { SMOOTHING = 16 };
	usec_t *longest = &registry->derivation_time;

	if (took > *longest)
		*longest = took;
	else
		*longest -= (*longest - took) / SMOOTHING;
}

static void deliver(struct derivation *derivation)
{
	struct registry *registry = derivation->registry;
	const bool derived = derivation->progress == SCRAM_DERIVATION_DONE;

	/* Only those for clients: servers choose their own number of iterations. */
	if (derivation->owner.into)
		update_longest(registry, derivation->took);
	if (derivation->owner.handle)
		*derivation->owner.handle = NULL;
	derivation->owner.handle = NULL;
	derivation->done(registry, &derivation->owner, &derivation->parameters,
		derived ? &derivation->keys : NULL);
	release(derivation);
	free_derivation(derivation);
}

/* Has the secret of a verifier's keys been dropped, and does no login wait for them? */
static bool is_useless(const struct derivation *derivation)
{
	const struct user_keys *into = derivation->owner.into;

	return into && into->references == 1 && TAILQ_EMPTY(&into->waiting);
}

static void drop(struct derivation *derivation)
{
	release(derivation);
	free_derivation(derivation);
}

void derivation_abandon(struct derivation *derivation)
{
	if (!derivation)
		return;
	*derivation->owner.handle = NULL;
	derivation->owner.handle = NULL;
	if (derivation->submitted) {
		atomic_store(&derivation->stop, true); /* on_slice() frees it */
		return;
	}
	fair_queue_remove(&derivation->registry->derivations->waiting, &derivation->entry);
	drop(derivation);
}

/* --- turns -------------------------------------------------------------------------------- */

/* Submit slices, as long as there are derivations and the helper has few of them. */
static void submit_slices(struct derivations *all)
{
	struct fair_entry *entry;

	while (all->submitted < all->submitted_most &&
		(entry = fair_queue_take(&all->waiting)) != NULL) {
		struct derivation *derivation = derivation_of(entry);

		if (is_useless(derivation)) {
			drop(derivation);
			continue;
		}
		if (!helper_submit(all->helper, &derivation->job)) {
			fair_queue_add(&all->waiting, entry, true);
			return;
		}
		derivation->submitted = true;
		all->submitted++;
	}
}

static void on_slice(struct helper_job *job)
{
	struct derivation *derivation = (struct derivation *)job;
	struct derivations *all;

	/* The process ends: derivations_end() has released it. */
	if (job->cancelled) {
		free_derivation(derivation);
		return;
	}
	all = derivation->registry->derivations;
	all->submitted--;
	derivation->submitted = false;
	if (atomic_load(&derivation->stop))
		drop(derivation);
	else if (derivation->progress == SCRAM_DERIVATION_UNFINISHED)
		fair_queue_add(&all->waiting, &derivation->entry, true);
	else
		deliver(derivation);
	submit_slices(all);
}

bool derivation_start(struct registry *registry, const struct derivation_owner *owner,
	const char *password, const struct scram_secret *parameters, derivation_function *done)
{
	struct derivations *all = registry->derivations;
	const size_t length = strlen(password);
	struct derivation *derivation;

	if (all->pending >= all->most)
		return false;
	derivation = calloc(1, sizeof(*derivation) + length + 1);
	if (!derivation)
		return false;
	derivation->job.work = run_slice;
	derivation->job.done = on_slice;
	derivation->registry = registry;
	derivation->owner = *owner;
	derivation->done = done;
	derivation->parameters = *parameters;
	memcpy(derivation->password, password, length + 1);
	if (!join(all, derivation)) {
		fair_queue_leave(&derivation->entry);
		free_derivation(derivation);
		return false;
	}
	if (owner->into)
		user_keys_ref(owner->into);
	if (owner->handle)
		*owner->handle = derivation;
	TAILQ_INSERT_TAIL(&all->all, derivation, in_all);
	all->pending++;
	fair_queue_add(&all->waiting, &derivation->entry, false);
	submit_slices(all);
	if (all->submitted > 0)
		return true;
	/* No thread could be started. */
	fair_queue_remove(&all->waiting, &derivation->entry);
	drop(derivation);
	return false;
}

/* --- all of them -------------------------------------------------------------------------- */

bool derivations_start(struct registry *registry, unsigned threads, unsigned most)
{
	struct derivations *all = calloc(1, sizeof(*all));

	if (!all)
		return false;
	all->most = most;
	all->submitted_most = threads * SLICES_EACH;
	all->helper = helper_new(registry->loop, threads, all->submitted_most);
	if (!all->helper) {
		free(all);
		return false;
	}
	TAILQ_INIT(&all->all);
	fair_queue_init(&all->waiting, turns, sizeof(turns));
	registry->derivations = all;
	return true;
}

unsigned derivations_end(struct registry *registry)
{
	struct derivations *all = registry->derivations;
	struct derivation *derivation;
	unsigned left;

	if (!all)
		return 0;
	while ((derivation = TAILQ_FIRST(&all->all)) != NULL) {
		atomic_store(&derivation->stop, true);
		release(derivation);
		/* A slice that is submitted frees the derivation when it ends. */
		if (!derivation->submitted)
			free_derivation(derivation);
	}
	left = helper_leave(all->helper);
	free(all);
	registry->derivations = NULL;
	return left;
}

unsigned derivations_pending(const struct registry *registry)
{
	return registry->derivations->pending;
}

usec_t derivation_end_expected(const struct registry *registry)
{
	/* Limits for a thousand iterations on the processors in use. */
	const usec_t fastest = 200, slowest = 1000;
	const usec_t thousands = registry->process->settings->scram_iterations / 1000 + 1;
	usec_t one =
		registry->derivation_time ? registry->derivation_time : slowest * thousands;

	if (one < fastest * thousands)
		one = fastest * thousands;
	/* Twice the expected time, after all derivations that wait or run. */
	return loop_now(registry->loop) + 2 * one * ((usec_t)derivations_pending(registry) + 1);
}
