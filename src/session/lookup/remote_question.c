/* SPDX-License-Identifier: ISC */
#include "session/lookup/remote_question.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/link/close.h"
#include "session/link/login.h"
#include "session/lookup/login_asker.h"
#include "session/lookup/lookup_server.h"

enum outcome { OUTCOME_REFUSED, OUTCOME_FAILED, OUTCOME_FOUND, OUTCOME_UNKNOWN };

struct remote_question {
	struct mail mail; /* there with the question, and back with the answer */
	struct mail moved; /* back: see queued_at */
	struct mail withdrawal; /* there and back */
	struct loop *asking, *home;
	struct login *login; /* used by the asking worker only; NULL: it has ended */
	struct asker asker; /* used by the other worker only */
	/* Used by both. */
	_Atomic usec_t queued_at; /* as that of the asker */
	atomic_bool has_moved; /* the mail about it is on its way */
	/* The answer. */
	enum outcome outcome;
	struct user_question_refusal refusal;
	char name[CLIENT_USER_NAME_MAX + 1];
	char *secret; /* owned */
	size_t secret_length;
	/* The question, with its texts in `texts`. */
	struct user_question question;
	char texts[];
};

static void free_question(struct remote_question *remote)
{
	if (remote->secret)
		explicit_bzero(remote->secret, remote->secret_length);
	free(remote->secret);
	free(remote);
}

/* --- at the worker of the login ----------------------------------------------------------- */

static struct remote_question *of_moved(struct mail *mail)
{
	return (struct remote_question *)((char *)mail -
		offsetof(struct remote_question, moved));
}

static struct remote_question *of_withdrawal(struct mail *mail)
{
	return (struct remote_question *)((char *)mail -
		offsetof(struct remote_question, withdrawal));
}

/* Time in the queue does not count as time of the login, as for look-ups of this worker. */
static void follow_queue(struct asker *asker, usec_t queued_at, usec_t now)
{
	if (queued_at == 0 && asker->queued_at > 0)
		asker->queued += now - asker->queued_at;
	if ((queued_at == 0) != (asker->queued_at == 0))
		asker->queued_at = queued_at > 0 ? now : 0;
}

static void on_moved(struct mail *mail, struct loop *loop)
{
	struct remote_question *remote = of_moved(mail);
	usec_t queued_at;

	/* First, so that a later move is either seen here or sends its own mail. */
	atomic_store(&remote->has_moved, false);
	queued_at = atomic_load(&remote->queued_at);
	if (!remote->login)
		return;
	follow_queue(&remote->login->asker, queued_at, loop_now(loop));
	remote->login->asker.events->moved(&remote->login->asker);
}

static void take_secret(struct asker *asker, const struct remote_question *remote)
{
	const struct failure no_memory = failure_of(REASON_NO_MEMORY);
	struct credential *credential = credential_new(remote->secret, remote->secret_length);

	if (credential)
		asker->events->found(asker, remote->name, credential);
	else
		asker->events->failed(asker, &no_memory);
	credential_unref(credential);
}

static void take_answer(struct asker *asker, const struct remote_question *remote)
{
	switch (remote->outcome) {
	case OUTCOME_REFUSED:
		user_question_log(login_of(asker)->client, remote->question.where,
			remote->refusal.problem);
		asker->events->failed(asker, &remote->refusal.why);
		break;
	case OUTCOME_FAILED:
		asker->events->failed(asker, &remote->refusal.why);
		break;
	case OUTCOME_FOUND:
		take_secret(asker, remote);
		break;
	case OUTCOME_UNKNOWN:
		asker->events->found(asker, remote->question.user, NULL);
		break;
	}
}

static void on_answer(struct mail *mail, struct loop *loop)
{
	struct remote_question *remote = (struct remote_question *)mail;
	struct login *login = remote->login;

	if (!login)
		return; /* freed by the withdrawal, which comes back later */
	login->remote = NULL;
	follow_queue(&login->asker, 0, loop_now(loop));
	take_answer(&login->asker, remote);
	free_question(remote);
}

static void on_withdrawn(struct mail *mail, struct loop *loop)
{
	(void)loop;
	free_question(of_withdrawal(mail));
}

/* --- at the worker of the database -------------------------------------------------------- */

static struct remote_question *of_asker(struct asker *asker)
{
	return (struct remote_question *)((char *)asker -
		offsetof(struct remote_question, asker));
}

static void answer(struct remote_question *remote, enum outcome outcome)
{
	remote->outcome = outcome;
	remote->mail.deliver = on_answer;
	crew_post(remote->asking, &remote->mail);
}

static void moved(struct asker *asker)
{
	struct remote_question *remote = of_asker(asker);

	atomic_store(&remote->queued_at, asker->queued_at);
	if (!atomic_exchange(&remote->has_moved, true))
		crew_post(remote->asking, &remote->moved);
}

static void failed(struct asker *asker, const struct failure *why)
{
	struct remote_question *remote = of_asker(asker);

	remote->refusal.why = *why;
	answer(remote, OUTCOME_FAILED);
}

static void found(struct asker *asker, const char *name, struct credential *credential)
{
	const struct failure no_memory = failure_of(REASON_NO_MEMORY);
	struct remote_question *remote = of_asker(asker);

	if (!credential) {
		answer(remote, OUTCOME_UNKNOWN);
		return;
	}
	remote->secret_length = credential->size - 1;
	remote->secret = malloc(credential->size);
	if (!remote->secret) {
		failed(asker, &no_memory);
		return;
	}
	memcpy(remote->secret, credential->secret, credential->size);
	(void)snprintf(remote->name, sizeof(remote->name), "%s", name);
	answer(remote, OUTCOME_FOUND);
}

static const struct asker_events events = {
	.moved = moved,
	.failed = failed,
	.found = found,
};

static void on_question(struct mail *mail, struct loop *loop)
{
	struct remote_question *remote = (struct remote_question *)mail;

	if (!user_question_ask(
		    &remote->asker, loop->owner, &remote->question, &remote->refusal))
		answer(remote, OUTCOME_REFUSED);
}

static void on_withdrawal(struct mail *mail, struct loop *loop)
{
	struct remote_question *remote = of_withdrawal(mail);

	(void)loop;
	lookup_leave(&remote->asker); /* does nothing after the answer */
	mail->deliver = on_withdrawn;
	crew_post(remote->asking, mail);
}

/* --- begin and end ------------------------------------------------------------------------ */

/* Copies the text to *end, which it moves behind the copy. */
static const char *keep(char **end, const char *text)
{
	char *copy = *end;

	*end = stpcpy(copy, text) + 1;
	return copy;
}

static struct remote_question *make(const struct user_question *question)
{
	struct remote_question *remote = calloc(1,
		sizeof(*remote) + strlen(question->where) + strlen(question->query) +
			strlen(question->auth_user) + strlen(question->user) + 4);
	char *end;

	if (!remote)
		return NULL;
	end = remote->texts;
	remote->question = (struct user_question){
		.where = keep(&end, question->where),
		.query = keep(&end, question->query),
		.auth_user = keep(&end, question->auth_user),
		.user = keep(&end, question->user),
		.replica = question->replica,
	};
	return remote;
}

void remote_question_begin(struct client_link *client, const struct registry *home,
	const struct user_question *question)
{
	struct remote_question *remote = make(question);

	if (!remote) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	remote->asking = link_registry(&client->link)->loop;
	remote->home = home->loop;
	remote->login = client->login;
	remote->asker.events = &events;
	remote->asker.since = client->link.request_time;
	remote->mail.deliver = on_question;
	remote->moved.deliver = on_moved;
	remote->withdrawal.deliver = on_withdrawal;
	client->login->remote = remote;
	client->login->asker.queued_at = loop_now(remote->asking);
	login_asker_wait(client);
	crew_post(remote->home, &remote->mail);
}

void remote_question_withdraw(struct remote_question *remote)
{
	if (!remote)
		return;
	remote->login = NULL;
	crew_post(remote->home, &remote->withdrawal);
}
