/* SPDX-License-Identifier: ISC */
#include "session/auth/external_auth.h"

#include <stdlib.h>
#include <string.h>

#include "session/auth/client_login_state.h"
#include "session/auth/exchange.h"

enum {
	/* So many may hang before the others have to wait. */
	THREADS = 8,
	/* Operators know the line about a full queue, and this size of it. */
	QUEUE_SIZE = 20,
};

TAILQ_HEAD(external_auth_list, external_auth);

struct external_auth_queue {
	struct registry *registry;
	const struct external_auth_method *authority;
	struct helper *helper;
	struct external_auth_list waiting; /* for a place in the helper's queue */
};

/* --- one external_auth request -------------------------------------------------------------------------- */

struct external_auth *external_auth_new(const char *user, const void *password, size_t length)
{
	struct external_auth *request = calloc(1, sizeof(*request));

	if (!request)
		return NULL;
	request->user = strdup(user);
	request->password = strndup(password, length);
	if (request->user && request->password)
		return request;
	external_auth_free(request);
	return NULL;
}

void external_auth_free(struct external_auth *request)
{
	if (request->password)
		explicit_bzero(request->password, strlen(request->password));
	free(request->password);
	free(request->user);
	ldap_options_free(&request->ldap);
	free(request);
}

void external_auth_abandon(struct external_auth *request)
{
	struct external_auth_queue *queue = request->queue;

	switch (request->state) {
	case EXTERNAL_AUTH_WAITS:
		TAILQ_REMOVE(&queue->waiting, request, entry);
		break;
	case EXTERNAL_AUTH_ASKED:
		request->abandoned = true;
		return;
	case EXTERNAL_AUTH_HELD:
		wheel_remove(&queue->registry->loop->wheel, &request->held);
		break;
	}
	external_auth_free(request);
}

/* --- what comes of it --------------------------------------------------------------------- */

static void log_refusal(const struct client_link *client, const struct external_auth *request)
{
	link_log_repeated(&client->link,
		request->answer == EXTERNAL_AUTH_FAILED ? LEVEL_WARNING : LEVEL_LOG,
		"%s authentication: %s", request->queue->authority->name, request->why);
}

/* The login goes on, well or not. */
static void tell(struct client_link *client, struct external_auth *request)
{
	enum auth_result result;

	client->login->external_auth = NULL;
	client->login->expired = request->expired;
	if (request->answer == EXTERNAL_AUTH_RIGHT)
		result = client->login->steps->learn(client, request->password);
	else
		result = exchange_refuse(client);
	external_auth_free(request);
	client->login->steps->proceed(client, result);
}

static void on_held_long_enough(struct deadline *deadline)
{
	struct external_auth *request = (struct external_auth *)((char *)deadline -
		offsetof(struct external_auth, held));
	struct client_link *client =
		client_login_find(request->queue->registry, request->job.link);

	if (client)
		tell(client, request);
	else
		external_auth_free(request);
}

static void hold(struct external_auth *request)
{
	struct loop *loop = request->queue->registry->loop;

	request->state = EXTERNAL_AUTH_HELD;
	request->held.expire = on_held_long_enough;
	wheel_set(&loop->wheel, &request->held, loop_now(loop) + request->delay);
}

static void submit_waiting(struct external_auth_queue *queue)
{
	struct external_auth *request;

	while ((request = TAILQ_FIRST(&queue->waiting)) != NULL) {
		if (!helper_submit(queue->helper, &request->job))
			return;
		request->state = EXTERNAL_AUTH_ASKED;
		TAILQ_REMOVE(&queue->waiting, request, entry);
	}
}

/* The queue may be closed meanwhile. */
static void ask(struct helper_job *job)
{
	struct external_auth *request = (struct external_auth *)job;

	/* When an authority hangs, those who gave up must not keep the others waiting too. */
	if (!request->abandoned)
		request->authority->ask(request);
}

static void on_answer(struct helper_job *job)
{
	struct external_auth *request = (struct external_auth *)job;
	struct client_link *client = NULL;

	if (!job->cancelled) {
		submit_waiting(request->queue);
		client = client_login_find(request->queue->registry, job->link);
	}
	if (!client || request->abandoned) {
		external_auth_free(request);
		return;
	}
	if (request->answer != EXTERNAL_AUTH_RIGHT)
		log_refusal(client, request);
	if (request->answer != EXTERNAL_AUTH_RIGHT && request->delay > 0)
		hold(request);
	else
		tell(client, request);
}

/* --- the queue ----------------------------------------------------------------------------- */

static struct external_auth_queue *open_queue(
	struct registry *registry, const struct external_auth_method *authority)
{
	struct external_auth_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->registry = registry;
	queue->authority = authority;
	TAILQ_INIT(&queue->waiting);
	queue->helper = helper_new(registry->loop, THREADS, QUEUE_SIZE);
	if (queue->helper)
		return queue;
	free(queue);
	return NULL;
}

/* Those who wait already go first; who finds nobody waiting may be asked about at once. */
static void stand_in_line(struct external_auth_queue *queue, struct external_auth *request)
{
	const bool first = TAILQ_EMPTY(&queue->waiting);

	request->state = EXTERNAL_AUTH_WAITS;
	TAILQ_INSERT_TAIL(&queue->waiting, request, entry);
	submit_waiting(queue);
	/* Once: as long as somebody waits it is the same queue that is full. */
	if (first && !TAILQ_EMPTY(&queue->waiting))
		log_write(LEVEL_WARNING, "%s queue is full, waiting", queue->authority->name);
}

bool external_auth_start(struct client_link *client, struct external_auth_queue **queue,
	const struct external_auth_method *authority, struct external_auth *request)
{
	if (!*queue)
		*queue = open_queue(link_registry(&client->link), authority);
	if (!*queue) {
		external_auth_free(request);
		return false;
	}
	request->queue = *queue;
	request->authority = authority;
	request->job.work = ask;
	request->job.done = on_answer;
	request->job.link = client->link.id;
	client->login->external_auth = request;
	stand_in_line(*queue, request);
	return true;
}

unsigned external_auth_queue_free(struct external_auth_queue *queue)
{
	unsigned left;

	if (!queue)
		return 0;
	left = helper_leave(queue->helper);
	free(queue);
	return left;
}
