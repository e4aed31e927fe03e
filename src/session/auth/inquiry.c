/* SPDX-License-Identifier: ISC */
#include "session/auth/inquiry.h"

#include <stdlib.h>
#include <string.h>

#include "session/auth/method.h"
#include "session/client_login.h"
#include "session/client_login_state.h"

enum {
	/* So many may hang before the others have to wait. */
	THREADS = 8,
	/* Operators know the line about a full queue, and this size of it. */
	QUEUE_SIZE = 20,
};

TAILQ_HEAD(inquiry_list, inquiry);

struct inquiry_desk {
	struct registry *registry;
	const struct inquiry_authority *authority;
	struct helper *helper;
	struct inquiry_list waiting; /* for a place in the helper's queue */
};

/* --- one inquiry -------------------------------------------------------------------------- */

struct inquiry *inquiry_new(const char *user, const void *password, size_t length)
{
	struct inquiry *inquiry = calloc(1, sizeof(*inquiry));

	if (!inquiry)
		return NULL;
	inquiry->user = strdup(user);
	inquiry->password = strndup(password, length);
	if (inquiry->user && inquiry->password)
		return inquiry;
	inquiry_free(inquiry);
	return NULL;
}

void inquiry_free(struct inquiry *inquiry)
{
	if (inquiry->password)
		explicit_bzero(inquiry->password, strlen(inquiry->password));
	free(inquiry->password);
	free(inquiry->user);
	ldap_options_free(&inquiry->ldap);
	free(inquiry);
}

void inquiry_abandon(struct inquiry *inquiry)
{
	struct inquiry_desk *desk = inquiry->desk;

	switch (inquiry->state) {
	case INQUIRY_WAITS:
		TAILQ_REMOVE(&desk->waiting, inquiry, entry);
		break;
	case INQUIRY_ASKED:
		inquiry->abandoned = true;
		return;
	case INQUIRY_HELD:
		wheel_remove(&desk->registry->loop->wheel, &inquiry->held);
		break;
	}
	inquiry_free(inquiry);
}

/* --- what comes of it --------------------------------------------------------------------- */

static void log_refusal(const struct client_link *client, const struct inquiry *inquiry)
{
	link_log_repeated(&client->link,
		inquiry->answer == INQUIRY_FAILED ? LEVEL_WARNING : LEVEL_LOG,
		"%s authentication: %s", inquiry->desk->authority->name, inquiry->why);
}

/* The login goes on, well or not. */
static void tell(struct client_link *client, struct inquiry *inquiry)
{
	enum auth_result result;

	client->login->inquiry = NULL;
	client->login->expired = inquiry->expired;
	if (inquiry->answer == INQUIRY_RIGHT)
		result = client_login_learn(client, inquiry->password);
	else
		result = auth_refuse(client);
	inquiry_free(inquiry);
	client_login_proceed(client, result);
}

static void on_held_long_enough(struct deadline *deadline)
{
	struct inquiry *inquiry =
		(struct inquiry *)((char *)deadline - offsetof(struct inquiry, held));
	struct client_link *client =
		client_login_find(inquiry->desk->registry, inquiry->job.link);

	if (client)
		tell(client, inquiry);
	else
		inquiry_free(inquiry);
}

static void hold(struct inquiry *inquiry)
{
	struct loop *loop = inquiry->desk->registry->loop;

	inquiry->state = INQUIRY_HELD;
	inquiry->held.expire = on_held_long_enough;
	wheel_set(&loop->wheel, &inquiry->held, loop_now(loop) + inquiry->delay);
}

static void submit_waiting(struct inquiry_desk *desk)
{
	struct inquiry *inquiry;

	while ((inquiry = TAILQ_FIRST(&desk->waiting)) != NULL) {
		if (!helper_submit(desk->helper, &inquiry->job))
			return;
		inquiry->state = INQUIRY_ASKED;
		TAILQ_REMOVE(&desk->waiting, inquiry, entry);
	}
}

/* The desk may be closed meanwhile. */
static void ask(struct helper_job *job)
{
	struct inquiry *inquiry = (struct inquiry *)job;

	/* When an authority hangs, those who gave up must not keep the others waiting too. */
	if (!inquiry->abandoned)
		inquiry->authority->ask(inquiry);
}

static void on_answer(struct helper_job *job)
{
	struct inquiry *inquiry = (struct inquiry *)job;
	struct client_link *client = NULL;

	if (!job->cancelled) {
		submit_waiting(inquiry->desk);
		client = client_login_find(inquiry->desk->registry, job->link);
	}
	if (!client || inquiry->abandoned) {
		inquiry_free(inquiry);
		return;
	}
	if (inquiry->answer != INQUIRY_RIGHT)
		log_refusal(client, inquiry);
	if (inquiry->answer != INQUIRY_RIGHT && inquiry->delay > 0)
		hold(inquiry);
	else
		tell(client, inquiry);
}

/* --- the desk ----------------------------------------------------------------------------- */

static struct inquiry_desk *open_desk(
	struct registry *registry, const struct inquiry_authority *authority)
{
	struct inquiry_desk *desk = calloc(1, sizeof(*desk));

	if (!desk)
		return NULL;
	desk->registry = registry;
	desk->authority = authority;
	TAILQ_INIT(&desk->waiting);
	desk->helper = helper_new(registry->loop, THREADS, QUEUE_SIZE);
	if (desk->helper)
		return desk;
	free(desk);
	return NULL;
}

/* Those who wait already go first; who finds nobody waiting may be asked about at once. */
static void stand_in_line(struct inquiry_desk *desk, struct inquiry *inquiry)
{
	const bool first = TAILQ_EMPTY(&desk->waiting);

	inquiry->state = INQUIRY_WAITS;
	TAILQ_INSERT_TAIL(&desk->waiting, inquiry, entry);
	submit_waiting(desk);
	/* Once: as long as somebody waits it is the same queue that is full. */
	if (first && !TAILQ_EMPTY(&desk->waiting))
		log_write(LEVEL_WARNING, "%s queue is full, waiting", desk->authority->name);
}

bool inquiry_start(struct client_link *client, struct inquiry_desk **desk,
	const struct inquiry_authority *authority, struct inquiry *inquiry)
{
	if (!*desk)
		*desk = open_desk(link_registry(&client->link), authority);
	if (!*desk) {
		inquiry_free(inquiry);
		return false;
	}
	inquiry->desk = *desk;
	inquiry->authority = authority;
	inquiry->job.work = ask;
	inquiry->job.done = on_answer;
	inquiry->job.link = client->link.id;
	client->login->inquiry = inquiry;
	stand_in_line(*desk, inquiry);
	return true;
}

unsigned inquiry_desk_free(struct inquiry_desk *desk)
{
	unsigned left;

	if (!desk)
		return 0;
	left = helper_leave(desk->helper);
	free(desk);
	return left;
}
