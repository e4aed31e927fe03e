/* SPDX-License-Identifier: ISC */
#include "session/pool/reserve.h"

#include "session/pool/login_concurrency.h"
#include "session/pool/lookup.h"

struct reserve_waiter reserve_first_waiter(const struct pool *pool)
{
	const struct lookup *lookup = lookup_next(pool);
	struct link *link = TAILQ_FIRST(&pool->waiting);
	unsigned provided = login_concurrency_for_clients(pool);
	const struct asker *asker;

	if (provided == 0 && lookup &&
		(!link || lookup->since <= client_of(link)->wait_start)) {
		asker = TAILQ_FIRST(&lookup->askers);
		return (struct reserve_waiter){asker->since, asker->link};
	}
	for (; link && provided > 0; provided--)
		link = TAILQ_NEXT(link, place);
	return link ? reserve_waiter_of(client_of(link)) : (struct reserve_waiter){0};
}

static void on_due(struct deadline *deadline)
{
	pool_needs_work((struct pool *)((char *)deadline - offsetof(struct pool, reserve_due)));
}

/* An earlier deadline stays: then this client's turn is looked at again. */
static void look_again(struct pool *pool, usec_t due)
{
	struct deadline *deadline = &pool->reserve_due;

	if (deadline->due != 0 && deadline->due <= due)
		return;
	deadline->expire = on_due;
	wheel_set_exact(&pool->registry->loop->wheel, deadline, due);
}

bool reserve_may_be_used(struct pool *pool, struct reserve_waiter waiter)
{
	const usec_t timeout = pool->registry->process->settings->reserve_pool_timeout;
	const int reserve = pool_reserve_size(pool);
	usec_t due;

	if (timeout == 0 || reserve <= 0 || waiter.since == 0 ||
		pool_servers(pool) >= (unsigned)(pool_size(pool) + reserve))
		return false;
	due = waiter.since + timeout;
	if (loop_now(pool->registry->loop) >= due)
		return true;
	look_again(pool, due);
	return false;
}

void reserve_log_use(struct reserve_waiter waiter)
{
	if (waiter.link)
		link_log(waiter.link, LEVEL_WARNING, "taking connection from reserve_pool");
	else
		log_write(LEVEL_WARNING, "taking connection from reserve_pool");
}
