/* SPDX-License-Identifier: ISC */
/*
 * The question of an auth_query: which user has this name, and with which secret? It is asked in
 * a database of this worker, for a login here or at another worker.
 */
#ifndef PGUSHER_SESSION_LOOKUP_USER_QUESTION_H
#define PGUSHER_SESSION_LOOKUP_USER_QUESTION_H

#include "model/registry.h"
#include "session/link/asker.h"

struct user_question {
	/* The database to ask in: its name, from auth_dbname; or NULL: that of the client. */
	const char *where;
	struct database *database; /* of the client; NULL: it is at home at another worker */
	const char *query; /* the auth_query then */
	const char *auth_user; /* runs the query */
	const char *user; /* the name in question */
	bool replica; /* the client wants replication */
	const struct link *link; /* of the client, for the log; NULL: at another worker */
};

enum user_question_problem {
	USER_QUESTION_REFUSED,
	USER_QUESTION_NO_DATABASE, /* there is none of this name */
	USER_QUESTION_CONSOLE, /* the name is reserved */
};

struct user_question_refusal {
	enum user_question_problem problem;
	struct failure why;
};

/*
 * Ask the question: the asker waits for a look-up. Returns false and fills in `refusal` if it is
 * refused at once.
 */
bool user_question_ask(struct asker *asker, struct registry *registry,
	const struct user_question *question, struct user_question_refusal *refusal);

/* Log what is wrong with the configuration, if that has refused the question. */
void user_question_log(const struct client_link *client, const char *where,
	enum user_question_problem problem);

#endif
