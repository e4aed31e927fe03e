/* SPDX-License-Identifier: ISC */
/*
 * The hosts that the workers know, each once. Each registry has what its own servers and probes
 * have told; here this is put together. To be called by the first worker between
 * process_stop_others() and process_let_others_run().
 */
#ifndef PGUSHER_MODEL_SHARED_ALL_HOSTS_H
#define PGUSHER_MODEL_SHARED_ALL_HOSTS_H

#include "model/registry.h"

/* A host with its name. */
union host_room {
	struct host host;
	unsigned char bytes[sizeof(struct host) + DATABASE_HOST_LIMIT + 1];
};

/*
 * A walk over the hosts that are not gone, those of the first registry first. All but `process` is zero
 * at first. No host may be freed meanwhile.
 */
struct host_walk {
	const struct process *process;
	unsigned number; /* of the registry whose hosts come now */
	struct host *next; /* of these */
	bool has_begun; /* with these */
};

/* Returns the next host, that of the first registry that has it; NULL after the last one. */
struct host *host_walk_next(struct host_walk *walk);

/*
 * Returns what all registries know of this host, of the first registry that has it: a copy in
 * `room`, or the host itself if there is one worker. The role is that of the registry that was told
 * last, and so is what belongs to it. The host is down while any worker has it as failed, unless
 * another one has it up and the failed one has not tried it again for a minute. The servers are
 * summed.
 */
const struct host *all_hosts_view(
	const struct process *process, const struct host *host, union host_room *room);

/* Returns the host of the first registry that has this one. */
struct host *all_hosts_first(const struct process *process, struct host *host);

#endif
