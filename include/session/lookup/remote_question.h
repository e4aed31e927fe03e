/* SPDX-License-Identifier: ISC */
/*
 * The question of a login whose authentication database is at home at another worker.
 *
 * The question goes there by mail and waits for a look-up as the logins of that worker do; its
 * answer comes back by mail. When a server begins to run the look-up, mail says so, since the time
 * limits of the login depend on that. A client that leaves withdraws its question.
 *
 * The worker of the login makes the question and frees it: when it has come back with its answer,
 * or, if it was withdrawn, when the withdrawal has come back. Mail between two workers stays in
 * order, so nothing of a question is on its way then, and both workers may point to it till then.
 */
#ifndef PGUSHER_SESSION_LOOKUP_REMOTE_QUESTION_H
#define PGUSHER_SESSION_LOOKUP_REMOTE_QUESTION_H

#include "session/lookup/user_question.h"

struct remote_question;

/*
 * Ask the question, which has a query, at that worker, for an AUTHENTICATING client. The client is
 * LOOKING_UP when this returns, or was closed.
 */
void remote_question_begin(struct client_link *client, const struct registry *home,
	const struct user_question *question);

/* The login ends. NULL is allowed. */
void remote_question_withdraw(struct remote_question *remote);

#endif
