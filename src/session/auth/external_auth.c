/* SPDX-License-Identifier: ISC */
#include "session/auth/external_auth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/auth/exchange.h"

enum {
	/* Checks that can run, or hang, at the same time. */
	THREADS = 8,
	/* Size of the helper's queue: operators know it, and the warning about a full queue. */
	QUEUE_SIZE = 20,
};

TAILQ_HEAD(external_auth_list, external_auth);

struct external_auth_queue {
	const struct external_auth_method *method;
	struct helper *helper;
	struct external_auth_list waiting; /* for a place in the helper's queue */
};

/* --- requests ----------------------------------------------------------------------------- */

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

static struct loop *first_loop(const struct external_auth *request)
{
	const struct registry *registry = request->loop->owner;

	return registry->process->registries[0]->loop;
}

void external_auth_abandon(struct external_auth *request)
{
	if (request->away) {
		request->abandoned = true;
		crew_post(first_loop(request), &request->withdrawal);
		return;
	}
	switch (request->state) {
	case EXTERNAL_AUTH_WAITING:
		TAILQ_REMOVE(&request->queue->waiting, request, entry);
		break;
	case EXTERNAL_AUTH_SUBMITTED:
		request->abandoned = true;
		return;
	case EXTERNAL_AUTH_DELAYED:
		wheel_remove(&request->loop->wheel, &request->delayed);
		break;
	}
	external_auth_free(request);
}

/* --- answers ------------------------------------------------------------------------------ */

static void log_refusal(const struct client_link *client, const struct external_auth *request)
{
	link_log_repeated(&client->link,
		request->answer == EXTERNAL_AUTH_FAILED ? LEVEL_WARNING : LEVEL_LOG,
		"%s authentication: %s", request->method->name, request->why);
}

/* Free the request and continue the login with its answer. May close the client. */
static void finish(struct client_link *client, struct external_auth *request)
{
	enum auth_result result;

	client->login->external_auth = NULL;
	client->login->expired = request->expired;
	if (request->answer == EXTERNAL_AUTH_RIGHT)
		result = client->login->steps->accept_password(client, request->password);
	else
		result = exchange_refuse(client);
	external_auth_free(request);
	client->login->steps->proceed(client, result);
}

static void on_delay_over(struct deadline *deadline)
{
	struct external_auth *request = (struct external_auth *)((char *)deadline -
		offsetof(struct external_auth, delayed));

	finish(request->client, request);
}

static void delay_refusal(struct external_auth *request)
{
	struct loop *loop = request->loop;

	request->state = EXTERNAL_AUTH_DELAYED;
	request->delayed.expire = on_delay_over;
	wheel_set(&loop->wheel, &request->delayed, loop_now(loop) + request->delay);
}

static void submit_waiting(struct external_auth_queue *queue)
{
	struct external_auth *request;

	while ((request = TAILQ_FIRST(&queue->waiting)) != NULL) {
		if (!helper_submit(queue->helper, &request->job))
			return;
		request->state = EXTERNAL_AUTH_SUBMITTED;
		TAILQ_REMOVE(&queue->waiting, request, entry);
	}
}

/* Runs on a helper thread. The queue may be freed meanwhile, so it is not used. */
static void check(struct helper_job *job)
{
	struct external_auth *request = (struct external_auth *)job;

	/* When the method is slow, requests of ended logins must not delay the others. */
	if (!request->abandoned)
		request->method->check(request);
}

/* To be called by the worker of the login. */
static void take_answer(struct external_auth *request)
{
	if (request->answer != EXTERNAL_AUTH_RIGHT)
		log_refusal(request->client, request);
	if (request->answer != EXTERNAL_AUTH_RIGHT && request->delay > 0)
		delay_refusal(request);
	else
		finish(request->client, request);
}

/* --- mail --------------------------------------------------------------------------------- */

static struct external_auth *of_mail(struct mail *mail)
{
	return (struct external_auth *)((char *)mail - offsetof(struct external_auth, mail));
}

static struct external_auth *of_withdrawal(struct mail *mail)
{
	return (struct external_auth *)((char *)mail -
		offsetof(struct external_auth, withdrawal));
}

static void on_mailed_answer(struct mail *mail, struct loop *loop)
{
	struct external_auth *request = of_mail(mail);

	(void)loop;
	if (request->abandoned)
		return; /* freed with its withdrawal, which comes back later */
	request->away = false;
	take_answer(request);
}

static void send_answer(struct external_auth *request)
{
	request->answered = true;
	request->mail.deliver = on_mailed_answer;
	crew_post(request->loop, &request->mail);
}

static void on_withdrawn(struct mail *mail, struct loop *loop)
{
	(void)loop;
	external_auth_free(of_withdrawal(mail));
}

static void send_withdrawal_back(struct external_auth *request)
{
	request->withdrawal.deliver = on_withdrawn;
	crew_post(request->loop, &request->withdrawal);
}

static void on_withdrawal(struct mail *mail, struct loop *loop)
{
	struct external_auth *request = of_withdrawal(mail);

	(void)loop;
	if (!request->answered && request->state == EXTERNAL_AUTH_SUBMITTED) {
		request->withdrawn = true; /* the helper has it */
		return;
	}
	if (!request->answered)
		TAILQ_REMOVE(&request->queue->waiting, request, entry);
	send_withdrawal_back(request);
}

static void on_answer(struct helper_job *job)
{
	struct external_auth *request = (struct external_auth *)job;

	if (!job->cancelled)
		submit_waiting(request->queue);
	if (job->cancelled)
		external_auth_free(request);
	else if (request->away && request->withdrawn)
		send_withdrawal_back(request);
	else if (request->away)
		send_answer(request);
	else if (request->abandoned)
		external_auth_free(request);
	else
		take_answer(request);
}

/* --- the queue ---------------------------------------------------------------------------- */

static struct external_auth_queue *open_queue(
	struct registry *registry, const struct external_auth_method *method)
{
	struct external_auth_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->method = method;
	TAILQ_INIT(&queue->waiting);
	queue->helper = helper_new(registry->loop, THREADS, QUEUE_SIZE);
	if (queue->helper)
		return queue;
	free(queue);
	return NULL;
}

/* Append the request to those that wait, and submit as many of them as the helper accepts. */
static void enqueue(struct external_auth_queue *queue, struct external_auth *request)
{
	const bool first = TAILQ_EMPTY(&queue->waiting);

	request->state = EXTERNAL_AUTH_WAITING;
	TAILQ_INSERT_TAIL(&queue->waiting, request, entry);
	submit_waiting(queue);
	/* Warn only for the first request that has to wait, not for those behind it. */
	if (first && !TAILQ_EMPTY(&queue->waiting))
		log_write(LEVEL_WARNING, "%s queue is full, waiting", queue->method->name);
}

/* To be called by the first worker. Returns false when out of memory. */
static bool take_request(struct registry *registry, struct external_auth *request)
{
	if (!*request->place)
		*request->place = open_queue(registry, request->method);
	if (!*request->place)
		return false;
	request->queue = *request->place;
	enqueue(request->queue, request);
	return true;
}

static void on_request(struct mail *mail, struct loop *loop)
{
	struct external_auth *request = of_mail(mail);

	if (take_request(loop->owner, request))
		return;
	request->answer = EXTERNAL_AUTH_FAILED;
	(void)snprintf(request->why, sizeof(request->why), "out of memory");
	send_answer(request);
}

bool external_auth_start(struct client_link *client, struct external_auth_queue **place,
	const struct external_auth_method *method, struct external_auth *request)
{
	struct registry *registry = link_registry(&client->link);

	request->place = place;
	request->method = method;
	request->job.work = check;
	request->job.done = on_answer;
	request->client = client;
	request->loop = registry->loop;
	request->away = registry->number > 0;
	request->mail.deliver = on_request;
	request->withdrawal.deliver = on_withdrawal;
	if (request->away) {
		crew_post(first_loop(request), &request->mail);
	} else if (!take_request(registry, request)) {
		external_auth_free(request);
		return false;
	}
	client->login->external_auth = request;
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
