/* SPDX-License-Identifier: ISC */
#include "session/link/derivation.h"

#include <stdlib.h>
#include <string.h>

struct derivation {
	struct helper_job job;
	struct registry *registry;
	struct derivation_owner owner;
	derivation_function *done;
	struct scram_secret parameters;
	struct scram_keys keys;
	bool derived;
	bool abandoned;
	usec_t took;
	char password[];
};

static void derive(struct helper_job *job)
{
	struct derivation *derivation = (struct derivation *)job;
	const usec_t start = clock_monotonic();

	derivation->derived = scram_derive(derivation->password, derivation->parameters.salt,
		derivation->parameters.salt_length, derivation->parameters.iterations,
		&derivation->keys);
	derivation->took = clock_monotonic() - start;
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

usec_t derivation_end_expected(const struct registry *registry)
{
	/* Limits for a thousand iterations on the processors in use. */
	const usec_t fastest = 200, slowest = 1000;
	const usec_t thousands = registry->process->settings->scram_iterations / 1000 + 1;
	usec_t one =
		registry->derivation_time ? registry->derivation_time : slowest * thousands;

	if (one < fastest * thousands)
		one = fastest * thousands;
	/* Twice the expected time, after all derivations that are queued or running. */
	return loop_now(registry->loop) +
		2 * one * ((usec_t)helper_pending(registry->derivations) + 1);
}

static void hold_owner(const struct derivation_owner *owner)
{
	if (owner->user)
		owner->user->derivations++;
	if (owner->into)
		user_keys_ref(owner->into);
}

static void release_owner(struct registry *registry, const struct derivation_owner *owner)
{
	user_keys_unref(owner->into);
	if (!owner->user)
		return;
	owner->user->derivations--;
	registry_let_go_user(registry, owner->user);
}

static void finish(struct helper_job *job)
{
	struct derivation *derivation = (struct derivation *)job;

	if (derivation->owner.handle)
		*derivation->owner.handle = NULL;
	/* Only those for clients: servers choose their own number of iterations. */
	if (!job->cancelled && derivation->owner.into)
		update_longest(derivation->registry, derivation->took);
	if (!job->cancelled && !derivation->abandoned)
		derivation->done(derivation->registry, &derivation->owner,
			&derivation->parameters,
			derivation->derived ? &derivation->keys : NULL);
	release_owner(derivation->registry, &derivation->owner);
	explicit_bzero(derivation->password, strlen(derivation->password));
	explicit_bzero(&derivation->keys, sizeof(derivation->keys));
	free(derivation);
}

bool derivation_start(struct registry *registry, const struct derivation_owner *owner,
	const char *password, const struct scram_secret *parameters, derivation_function *done)
{
	const size_t length = strlen(password);
	struct derivation *derivation = calloc(1, sizeof(*derivation) + length + 1);

	if (!derivation)
		return false;
	derivation->job.work = derive;
	derivation->job.done = finish;
	derivation->job.link = owner->link;
	derivation->job.urgent = owner->urgent;
	derivation->registry = registry;
	derivation->owner = *owner;
	derivation->done = done;
	derivation->parameters = *parameters;
	memcpy(derivation->password, password, length + 1);
	hold_owner(owner);
	if (helper_submit(registry->derivations, &derivation->job)) {
		if (owner->handle)
			*owner->handle = derivation;
		return true;
	}
	release_owner(registry, owner);
	explicit_bzero(derivation->password, length);
	free(derivation);
	return false;
}

void derivation_abandon(struct registry *registry, struct derivation *derivation)
{
	if (!derivation)
		return;
	derivation->owner.handle = NULL;
	derivation->abandoned = true;
	helper_withdraw(registry->derivations, &derivation->job);
}
