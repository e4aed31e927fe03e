/* SPDX-License-Identifier: ISC */
/*
 * A tally: what the workers of a process count together for a user name (max_user_connections,
 * max_user_client_connections), or for the process (max_server_connections).
 *
 * Each worker has a share of the tally, which belongs to its struct cap. Servers are counted under
 * one lock for all tallies, so that no limit is exceeded for a moment: a worker that wants to
 * launch a server takes the places below all tallies in one step. The lock is taken when a server
 * is launched or closed, when a share is made, left or configured, and by pools that wait, claim or
 * are promised a place; never on the path of a transaction while no pool waits.
 *
 * A worker whose pools wait below a full tally publishes the claim of the first of them. Then mail goes
 * to the workers that have servers there: they look for one to close, by the rules of
 * session/pool/caps. When a place becomes free, mail goes to the worker whose claim comes first; until
 * that has taken the place or published another claim, no pool that comes later gets it.
 *
 * There are no tallies, and no shares, in a process with one worker.
 */
#ifndef PGUSHER_MODEL_SHARED_TALLY_H
#define PGUSHER_MODEL_SHARED_TALLY_H

#include "base/clock.h"
#include "base/lock.h"
#include "crypt/keyed_hash.h"
#include "model/database.h"
#include "net/crew/crew.h"

struct process;
struct random;
struct registry;
struct tally;

/* What the first waiting pool of a worker is entitled to: see cap_claim_of(). */
struct tally_claim {
	bool waits; /* false: no pool of the worker waits, and the rest means nothing */
	unsigned weight; /* pool_weight */
	unsigned places; /* servers that the pool has */
	unsigned next; /* its servers beyond min_pool_size, if it had one more */
	usec_t since; /* its client that has waited longest has waited since then */
};

enum tally_claim_state {
	TALLY_CLAIM_NEW, /* the other workers have not heard of it */
	TALLY_CLAIM_ASKED, /* they look for a server to close */
	TALLY_CLAIM_SERVED, /* one of them is about to close a server for it */
};

/* The part of one worker. */
struct tally_share {
	struct mail mail; /* to its worker: tally_look() */
	LIST_ENTRY(tally_share) entry; /* in tally.shares, or in tallies.gone */
	struct tally *tally; /* NULL: its cap is gone, and it is freed when the mail arrives */
	struct registry *registry;
	struct cap *cap;
	/* Changed by its worker only, under the lock. */
	struct tally_claim claim;
	/* Used under the lock. */
	enum tally_claim_state state; /* of the claim */
	unsigned servers; /* of its worker */
	bool posted; /* the mail is in the mailbox of the worker */
	/* Used by its worker only. */
	struct tally_claim others; /* the first claim of other workers when it last looked */
	bool must_publish; /* the published claim is out of date: publish again */
};

LIST_HEAD(tally_shares, tally_share);

struct tally {
	UT_hash_handle by_name;
	struct tally_shares shares;
	unsigned waiting; /* shares with a claim */
	unsigned limit; /* of servers; 0: none */
	bool full; /* no place was free at the last change */
	/* Changed under the lock, and read without it, too. */
	unsigned servers; /* of all workers */
	unsigned promised; /* places that are kept: cap_promise() */
	uint64_t minima; /* sum of min_pool_size of the pools of all workers */
	/*
	 * Changed by any worker without the lock: a limit that is checked against `pinned` or
	 * `listening` may be exceeded by one for each other worker.
	 */
	unsigned pinned, listening; /* of these servers */
	unsigned clients; /* that log in, or are logged in, as this user */
	char name[];
};

struct tallies {
	struct lock lock;
	struct tally *users; /* uthash, by name */
	struct tally *whole; /* that of the process; NULL: none */
	struct keyed_hash name_hash; /* keyed, since clients choose the names */
	struct tally_shares gone; /* shares whose mail has not arrived yet */
};

bool tallies_init(struct process *process, struct random *random);

/* All shares have been left. */
void tallies_free(struct process *process);

/*
 * Returns a share of the tally of this user name, which is made if necessary, or of the process
 * (`name` is NULL), for a cap of this registry; NULL: out of memory. `deliver` runs at its worker when
 * places have become free, or are wanted.
 */
struct tally_share *tally_join(
	struct registry *registry, const char *name, struct cap *cap, mail_function *deliver);

/*
 * To be called before the cap is freed, which has no servers. Frees the share, or leaves it in
 * `gone` until its mail arrives.
 */
void tally_leave(struct tally_share *share);

/*
 * To be called by `deliver`: note the claims of other workers. Returns the share, or NULL if its cap is
 * gone.
 */
struct tally_share *tally_look(struct mail *mail, struct registry *registry);

/* --- places ------------------------------------------------------------------------------- */

/* A place that a pool wants below a tally. */
struct tally_want {
	struct tally_share *share;
	struct tally_claim claim; /* of the pool */
	bool is_promised; /* one is kept for it */
	unsigned spare; /* so many more have to be free */
};

/*
 * Take a place below each of these tallies, or below none: a place that is free may be for a claim of
 * another worker. Returns the number of the first tally that refuses; `count`: all were taken.
 */
unsigned tally_take(struct process *process, const struct tally_want *wants, unsigned count);

/* Returns whether tally_take() would take this place. */
bool tally_has_place(const struct tally_want *want);

/* Count a server whatever the limit. */
void tally_add(struct tally_share *share);

/* A server was closed, or not launched: its place is free. */
void tally_give(struct tally_share *share);

/* Keep a place. Returns false if one is kept already. */
bool tally_promise(struct tally_share *share);
void tally_withdraw(struct tally_share *share);

/* The limit was read from the configuration; the sum of minima has changed. */
void tally_set_limit(struct tally_share *share, unsigned limit);
void tally_change_minima(struct tally_share *share, unsigned before, unsigned now);

/* --- claims ------------------------------------------------------------------------------- */

/* Publish the claim of the first waiting pool, if it differs from what was published. */
void tally_publish(struct tally_share *share, const struct tally_claim *claim);

enum tally_service {
	TALLY_SERVED, /* the server is to be closed; share.others is the claim that comes next */
	TALLY_CHANGED, /* another claim is the first one by now: share.others */
	TALLY_FREE, /* a place is free already */
};

/* Another worker has the claim share.others: may the caller close a server for it? */
enum tally_service tally_serve(struct tally_share *share);

#endif
