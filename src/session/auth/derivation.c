/* SPDX-License-Identifier: ISC */
#include "session/auth/derivation.h"

#include <stdlib.h>
#include <string.h>

struct derivation {
	struct helper_job job;
	struct registry *registry;
	struct user *user;
	derivation_function *done;
	struct scram_secret parameters;
	struct scram_keys keys;
	bool derived;
	char password[];
};

static void derive(struct helper_job *job)
{
	struct derivation *derivation = (struct derivation *)job;

	derivation->derived = scram_derive(derivation->password, derivation->parameters.salt,
		derivation->parameters.salt_length, derivation->parameters.iterations,
		&derivation->keys);
}

static void finish(struct helper_job *job)
{
	struct derivation *derivation = (struct derivation *)job;

	if (!job->cancelled)
		derivation->done(derivation->registry, job->link, derivation->user,
			&derivation->parameters,
			derivation->derived ? &derivation->keys : NULL);
	explicit_bzero(derivation->password, strlen(derivation->password));
	explicit_bzero(&derivation->keys, sizeof(derivation->keys));
	free(derivation);
}

bool derivation_start(struct registry *registry, uint64_t link, struct user *user,
	const char *password, const struct scram_secret *parameters, derivation_function *done)
{
	const size_t length = strlen(password);
	struct derivation *derivation = calloc(1, sizeof(*derivation) + length + 1);

	if (!derivation)
		return false;
	derivation->job.work = derive;
	derivation->job.done = finish;
	derivation->job.link = link;
	derivation->registry = registry;
	derivation->user = user;
	derivation->done = done;
	derivation->parameters = *parameters;
	memcpy(derivation->password, password, length + 1);
	if (helper_submit(registry->derivations, &derivation->job))
		return true;
	explicit_bzero(derivation->password, length);
	free(derivation);
	return false;
}
