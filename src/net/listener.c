/* SPDX-License-Identifier: ISC */
#include "net/listener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "net/listener_parts.h"

static bool open_all(
	struct listeners *set, const struct listen_options *options, char *why, size_t size)
{
	if (options->passed_count > 0)
		return listeners_take_passed(set, options, why, size);
	if (!listeners_open_tcp(set, options, why, size) ||
		!listeners_open_unix(set, options, why, size))
		return false;
	if (TAILQ_EMPTY(&set->list)) {
		snprintf(why, size, "nowhere to listen on");
		return false;
	}
	return true;
}

bool listeners_open(struct listeners *set, struct loop *loop,
	const struct listen_options *options, listener_function *accepted, void *context,
	char *why, size_t size)
{
	*set = (struct listeners){
		.loop = loop,
		.accepted = accepted,
		.context = context,
		.retry = {.expire = listeners_on_rested},
		.spare = -1,
	};
	TAILQ_INIT(&set->list);
	if (!listeners_take_spare(set)) {
		snprintf(why, size, "cannot open /dev/null: %s", strerror(errno));
		return false;
	}
	if (open_all(set, options, why, size))
		return true;
	/* The old process may still use the file of an inherited socket. */
	listeners_close_all(set, !options->inherited);
	return false;
}

static void close_tcp(struct listeners *set, bool only_passed)
{
	struct listener *listener, *next;

	TAILQ_FOREACH_SAFE (listener, &set->list, entry, next) {
		if (!listener->is_unix && (listener->is_passed || !only_passed))
			listener_free(listener);
	}
}

void listeners_close_tcp(struct listeners *set)
{
	close_tcp(set, false);
}

void listeners_close_passed(struct listeners *set)
{
	close_tcp(set, true);
}

void listeners_close_all(struct listeners *set, bool unlink_file)
{
	struct listener *listener;

	while ((listener = TAILQ_FIRST(&set->list)) != NULL) {
		if (unlink_file)
			listener_unlink(listener);
		listener_free(listener);
	}
	listeners_give_spare(set);
	wheel_remove(&set->loop->wheel, &set->retry);
	set->resting = false;
}

const struct listener *listeners_next(const struct listeners *set, const struct listener *after)
{
	return after ? TAILQ_NEXT(after, entry) : TAILQ_FIRST(&set->list);
}
