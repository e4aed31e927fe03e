/* SPDX-License-Identifier: ISC */
#include "model/shared/tally.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/random.h"
#include "model/registry.h"

static struct tallies *tallies_of(const struct tally_share *share)
{
	return &share->registry->process->tallies;
}

/* --- the order of claims ------------------------------------------------------------------ */

/* A pool without a server comes before all that have one, however heavy these are. */
static uint64_t load_of(const struct tally_claim *claim)
{
	return claim->places == 0 ? 0 : claim->next;
}

/* The order of the queue of a cap, and of two that are alike that of the workers. */
static bool comes_before(const struct tally_claim *a, unsigned worker_a,
	const struct tally_claim *b, unsigned worker_b)
{
	const uint64_t load_a = load_of(a) * b->weight, load_b = load_of(b) * a->weight;

	if (load_a != load_b)
		return load_a < load_b;
	return a->since != b->since ? a->since < b->since : worker_a < worker_b;
}

/* Returns how many claims of other workers come before this one of a worker. */
static unsigned count_ahead(const struct tally_share *share, const struct tally_claim *claim)
{
	const struct tally_share *other;
	unsigned count = 0;

	if (share->tally->waiting == 0)
		return 0;
	LIST_FOREACH(other, &share->tally->shares, entry)
	count += other != share && other->claim.waits &&
		comes_before(
			&other->claim, other->registry->number, claim, share->registry->number);
	return count;
}

/* Returns the share of another worker with the first claim that is not being served yet, or NULL. */
static struct tally_share *first_of_others(const struct tally_share *share)
{
	struct tally_share *other, *first = NULL;

	if (share->tally->waiting == 0)
		return NULL;
	LIST_FOREACH(other, &share->tally->shares, entry)
	{
		if (other == share || !other->claim.waits || other->state == TALLY_CLAIM_SERVED)
			continue;
		if (!first ||
			comes_before(&other->claim, other->registry->number, &first->claim,
				first->registry->number))
			first = other;
	}
	return first;
}

static void look_at_others(struct tally_share *share)
{
	const struct tally_share *first = first_of_others(share);

	share->others = first ? first->claim : (struct tally_claim){.waits = false};
}

/* --- mail --------------------------------------------------------------------------------- */

static void post(struct tally_share *share)
{
	if (share->posted)
		return;
	share->posted = true;
	crew_post(share->registry->loop, &share->mail);
}

/* Have the workers with servers look for one to close, for claims of which they do not know. */
static void ask_for_places(struct tally *tally)
{
	struct tally_share *share;
	unsigned news = 0;

	LIST_FOREACH(share, &tally->shares, entry)
	{
		if (!share->claim.waits || share->state != TALLY_CLAIM_NEW)
			continue;
		share->state = TALLY_CLAIM_ASKED;
		news++;
	}
	if (news == 0)
		return;
	LIST_FOREACH(share, &tally->shares, entry)
	{
		if (share->servers > 0)
			post(share);
	}
}

/* Returns whether no place is free. If one was, the workers have stopped to look for some. */
static bool is_full(struct tally *tally)
{
	const bool was_full = tally->full;
	struct tally_share *share;

	tally->full = tally->limit > 0 && tally->servers + tally->promised >= tally->limit;
	if (tally->full && !was_full) {
		LIST_FOREACH(share, &tally->shares, entry)
		{
			if (share->state == TALLY_CLAIM_ASKED)
				share->state = TALLY_CLAIM_NEW;
		}
	}
	return tally->full;
}

/*
 * Something has changed: wake the workers with claims to the places that are free, or ask the others for
 * places.
 */
static void settle(struct tally *tally)
{
	const unsigned taken = tally->servers + tally->promised;
	const bool full = is_full(tally);
	struct tally_share *share;

	if (tally->waiting == 0)
		return;
	if (full) {
		ask_for_places(tally);
		return;
	}
	LIST_FOREACH(share, &tally->shares, entry)
	{
		if (share->claim.waits &&
			(tally->limit == 0 ||
				count_ahead(share, &share->claim) < tally->limit - taken))
			post(share);
	}
}

struct tally_share *tally_look(struct mail *mail, struct registry *registry)
{
	struct tally_share *share = (struct tally_share *)mail;
	struct tallies *tallies = &registry->process->tallies;

	lock_take(&tallies->lock);
	share->posted = false;
	if (share->tally) {
		look_at_others(share);
	} else {
		LIST_REMOVE(share, entry);
		free(share);
		share = NULL;
	}
	lock_give(&tallies->lock);
	return share;
}

/* --- places ------------------------------------------------------------------------------- */

/* The counts are also read without the lock. */
static void change_servers(struct tally_share *share, int by)
{
	share->servers += (unsigned)by;
	SHARED_SET(share->tally->servers, share->tally->servers + (unsigned)by);
}

static bool has_place(const struct tally_want *want)
{
	struct tally_share *share = want->share;
	const struct tally *tally = share->tally;
	const unsigned taken =
		tally->servers + tally->promised - want->is_promised + want->spare;

	if (tally->limit == 0)
		return true;
	if (taken >= tally->limit)
		return false;
	if (want->is_promised || count_ahead(share, &want->claim) < tally->limit - taken)
		return true;
	/* The worker was woken for the claim that it has published, and its claim has changed since. */
	share->must_publish = true;
	return false;
}

bool tally_has_place(const struct tally_want *want)
{
	struct tallies *tallies = tallies_of(want->share);
	bool has;

	lock_take(&tallies->lock);
	has = has_place(want);
	lock_give(&tallies->lock);
	return has;
}

unsigned tally_take(struct process *process, const struct tally_want *wants, unsigned count)
{
	unsigned i;

	lock_take(&process->tallies.lock);
	for (i = 0; i < count; i++) {
		if (!has_place(&wants[i]))
			break;
	}
	for (unsigned taken = 0; i == count && taken < count; taken++) {
		change_servers(wants[taken].share, 1);
		settle(wants[taken].share->tally);
		look_at_others(wants[taken].share);
	}
	lock_give(&process->tallies.lock);
	return i;
}

void tally_add(struct tally_share *share)
{
	struct tallies *tallies = tallies_of(share);

	lock_take(&tallies->lock);
	change_servers(share, 1);
	settle(share->tally);
	look_at_others(share);
	lock_give(&tallies->lock);
}

void tally_give(struct tally_share *share)
{
	struct tallies *tallies = tallies_of(share);
	struct tally_share *each;

	lock_take(&tallies->lock);
	change_servers(share, -1);
	/* Another worker than the one that it was closed for may come first by now. */
	LIST_FOREACH(each, &share->tally->shares, entry)
	{
		if (each->state == TALLY_CLAIM_SERVED)
			each->state = TALLY_CLAIM_NEW;
	}
	settle(share->tally);
	lock_give(&tallies->lock);
}

bool tally_promise(struct tally_share *share)
{
	struct tallies *tallies = tallies_of(share);
	bool is_first;

	lock_take(&tallies->lock);
	is_first = share->tally->promised == 0;
	if (is_first) {
		SHARED_SET(share->tally->promised, 1);
		settle(share->tally);
	}
	lock_give(&tallies->lock);
	return is_first;
}

void tally_withdraw(struct tally_share *share)
{
	struct tallies *tallies = tallies_of(share);

	lock_take(&tallies->lock);
	CHECK(share->tally->promised > 0);
	SHARED_SET(share->tally->promised, 0);
	settle(share->tally);
	lock_give(&tallies->lock);
}

void tally_set_limit(struct tally_share *share, unsigned limit)
{
	struct tallies *tallies = tallies_of(share);

	lock_take(&tallies->lock);
	if (share->tally->limit != limit) {
		share->tally->limit = limit;
		settle(share->tally);
	}
	lock_give(&tallies->lock);
}

void tally_change_minima(struct tally_share *share, unsigned before, unsigned now)
{
	struct tallies *tallies = tallies_of(share);
	struct tally *tally = share->tally;
	bool counted;

	if (before == now)
		return;
	lock_take(&tallies->lock);
	counted = tally->minima <= tally->limit;
	SHARED_SET(tally->minima, tally->minima - before + now);
	if (tally->limit > 0 && tally->waiting > 0 &&
		counted != (tally->minima <= tally->limit)) {
		/* Other servers may be closed now. */
		LIST_FOREACH(share, &tally->shares, entry)
		post(share);
	}
	lock_give(&tallies->lock);
}

/* --- claims ------------------------------------------------------------------------------- */

/*
 * Since when the pool waits decides only among claims that are alike otherwise, and changes with each
 * client that is served: it stays what it was when the claim was published, unless the worker got no
 * place because of it (must_publish).
 */
static bool is_published(const struct tally_share *share, const struct tally_claim *claim)
{
	const struct tally_claim *own = &share->claim;

	if (!claim->waits)
		return !own->waits;
	return own->waits && !share->must_publish && own->weight == claim->weight &&
		own->places == claim->places && own->next == claim->next;
}

void tally_publish(struct tally_share *share, const struct tally_claim *claim)
{
	struct tallies *tallies = tallies_of(share);

	if (is_published(share, claim))
		return;
	share->must_publish = false;
	lock_take(&tallies->lock);
	share->tally->waiting += claim->waits;
	share->tally->waiting -= share->claim.waits;
	share->claim = *claim;
	share->state = TALLY_CLAIM_NEW;
	settle(share->tally);
	lock_give(&tallies->lock);
}

static bool is_same(const struct tally_claim *a, const struct tally_claim *b)
{
	return a->waits == b->waits && a->weight == b->weight && a->places == b->places &&
		a->next == b->next && a->since == b->since;
}

/* The lock is held. */
static enum tally_service serve(struct tally_share *share, const struct tally_claim *wanted)
{
	struct tally_share *first = first_of_others(share);

	if (!first || !is_same(&first->claim, wanted))
		return TALLY_CHANGED;
	if (!is_full(share->tally))
		return TALLY_FREE;
	first->state = TALLY_CLAIM_SERVED;
	return TALLY_SERVED;
}

enum tally_service tally_serve(struct tally_share *share)
{
	struct tallies *tallies = tallies_of(share);
	enum tally_service service;

	lock_take(&tallies->lock);
	service = serve(share, &share->others);
	look_at_others(share);
	lock_give(&tallies->lock);
	return service;
}

/* --- making and freeing ------------------------------------------------------------------- */

bool tallies_init(struct process *process, struct random *random)
{
	uint8_t key[KEYED_HASH_KEY_SIZE];

	random_fill(random, key, sizeof(key));
	return keyed_hash_init(&process->tallies.name_hash, key);
}

void tallies_free(struct process *process)
{
	struct tallies *tallies = &process->tallies;
	struct tally_share *share;

	CHECK(!tallies->users && !tallies->whole);
	while ((share = LIST_FIRST(&tallies->gone)) != NULL) {
		LIST_REMOVE(share, entry);
		free(share);
	}
	lock_end(&tallies->lock);
	keyed_hash_free(&tallies->name_hash);
}

static struct tally *make(const char *name, size_t length)
{
	struct tally *tally = calloc(1, sizeof(*tally) + length + 1);

	if (tally)
		memcpy(tally->name, name, length);
	return tally;
}

static struct tally *open_of_process(struct tallies *tallies)
{
	if (!tallies->whole)
		tallies->whole = make("", 0);
	return tallies->whole;
}

static struct tally *open_of_user(struct tallies *tallies, const char *name)
{
	const size_t length = strlen(name);
	const unsigned hash = (unsigned)keyed_hash_of(&tallies->name_hash, name, length);
	struct tally *tally = NULL;

	HASH_FIND_BYHASHVALUE(by_name, tallies->users, name, length, hash, tally);
	if (tally)
		return tally;
	tally = make(name, length);
	if (!tally)
		return NULL;
	HASH_ADD_KEYPTR_BYHASHVALUE(by_name, tallies->users, tally->name, length, hash, tally);
	if (tally->by_name.tbl)
		return tally;
	free(tally);
	return NULL;
}

struct tally_share *tally_join(
	struct registry *registry, const char *name, struct cap *cap, mail_function *deliver)
{
	struct tallies *tallies = &registry->process->tallies;
	struct tally_share *share = calloc(1, sizeof(*share));
	struct tally *tally;

	if (!share)
		return NULL;
	share->mail.deliver = deliver;
	share->registry = registry;
	share->cap = cap;
	lock_take(&tallies->lock);
	tally = name ? open_of_user(tallies, name) : open_of_process(tallies);
	share->tally = tally;
	if (tally)
		LIST_INSERT_HEAD(&tally->shares, share, entry);
	lock_give(&tallies->lock);
	if (tally)
		return share;
	free(share);
	return NULL;
}

static void drop(struct tallies *tallies, struct tally *tally)
{
	if (tally == tallies->whole)
		tallies->whole = NULL;
	else
		HASH_DELETE(by_name, tallies->users, tally);
	free(tally);
}

void tally_leave(struct tally_share *share)
{
	static const struct tally_claim none = {.waits = false};
	struct tallies *tallies = tallies_of(share);
	struct tally *tally = share->tally;
	bool is_posted;

	tally_publish(share, &none);
	lock_take(&tallies->lock);
	CHECK(share->servers == 0);
	LIST_REMOVE(share, entry);
	share->tally = NULL;
	if (LIST_EMPTY(&tally->shares))
		drop(tallies, tally);
	is_posted = share->posted;
	if (is_posted)
		LIST_INSERT_HEAD(&tallies->gone, share, entry);
	lock_give(&tallies->lock);
	if (!is_posted)
		free(share);
}
