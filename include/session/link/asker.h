/* SPDX-License-Identifier: ISC */
/*
 * One that waits for a look-up (session/pool/lookup): a login of a client at this worker, or the
 * question of a login at another worker (lookup/remote_question). The look-up knows no more of it
 * than its functions.
 */
#ifndef PGUSHER_SESSION_LINK_ASKER_H
#define PGUSHER_SESSION_LINK_ASKER_H

#include <bsd/sys/queue.h>

#include "base/clock.h"
#include "base/failure.h"

struct asker;
struct credential;
struct link;
struct lookup;

/*
 * What a look-up calls. The look-up has let the asker go before `failed` and `found`, which may
 * free it.
 */
struct asker_events {
	/* A server runs the look-up now; or, if queued_at is set, it waits for another one. */
	void (*moved)(struct asker *asker);
	void (*failed)(struct asker *asker, const struct failure *why);
	/* auth_query has found this user; without a credential there is no user of this name. */
	void (*found)(struct asker *asker, const char *name, struct credential *credential);
};

TAILQ_HEAD(asker_list, asker);

struct asker {
	const struct asker_events *events;
	struct lookup *lookup; /* that it waits for; NULL: none */
	TAILQ_ENTRY(asker) in_lookup;
	usec_t since; /* when the client sent its last message */
	const struct link *link; /* of the client; NULL: it is at another worker */
	/* Since when the look-up waits for a server; 0: it has one, or there is no look-up. */
	usec_t queued_at;
	usec_t queued; /* total time that look-ups have waited for servers */
};

#endif
