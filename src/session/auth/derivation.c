/* SPDX-License-Identifier: ISC */
#include "session/auth/derivation.h"

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
	char password[];
};

static void derive(struct helper_job *job)
{
	struct derivation *derivation = (struct derivation *)job;

	derivation->derived = scram_derive(derivation->password, derivation->parameters.salt,
		derivation->parameters.salt_length, derivation->parameters.iterations,
		&derivation->keys);
}

static void keep(const struct derivation_owner *owner)
{
	if (owner->user)
		owner->user->derivations++;
	if (owner->into)
		user_keys_ref(owner->into);
}

static void let_go(struct registry *registry, const struct derivation_owner *owner)
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
	if (!job->cancelled && !derivation->abandoned)
		derivation->done(derivation->registry, &derivation->owner,
			&derivation->parameters,
			derivation->derived ? &derivation->keys : NULL);
	let_go(derivation->registry, &derivation->owner);
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
	keep(owner);
	if (helper_submit(registry->derivations, &derivation->job)) {
		if (owner->handle)
			*owner->handle = derivation;
		return true;
	}
	let_go(registry, owner);
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
