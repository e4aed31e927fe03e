/* SPDX-License-Identifier: ISC */
/*
 * Passwords that an external method checks: an LDAP server, or PAM modules. These checks block,
 * possibly for long, so they run on helper threads.
 *
 * A request is one password of one login. Each method has a queue with threads of its own. The
 * helper's queue is bounded; when it is full, further requests wait in order in the list
 * `waiting`, for as long as their logins may take. If a login ends, its request is abandoned
 * and its answer is dropped.
 *
 * The queues belong to the first worker, so that their limits hold for the process. Requests of
 * logins at other workers come and go by mail; if their login ends, they are withdrawn by mail,
 * and freed by the worker of the login when the withdrawal has come back.
 */
#ifndef PGUSHER_SESSION_AUTH_EXTERNAL_AUTH_H
#define PGUSHER_SESSION_AUTH_EXTERNAL_AUTH_H

#include "config/ldap/ldap_options.h"
#include "model/registry.h"

enum external_auth_answer {
	EXTERNAL_AUTH_WRONG, /* wrong password or user name */
	EXTERNAL_AUTH_RIGHT,
	EXTERNAL_AUTH_FAILED, /* the check could not be made */
};

enum external_auth_state {
	EXTERNAL_AUTH_WAITING, /* for a place in the helper's queue */
	EXTERNAL_AUTH_SUBMITTED, /* to the helper */
	EXTERNAL_AUTH_DELAYED, /* answered: the refusal is sent later */
};

struct external_auth;

/* An external method. check() runs on a thread and uses only the request that it gets. */
struct external_auth_method {
	const char *name;
	void (*check)(struct external_auth *request);
};

struct external_auth {
	struct helper_job job;
	TAILQ_ENTRY(external_auth) entry; /* EXTERNAL_AUTH_WAITING: in queue->waiting */
	struct external_auth_queue *queue;
	const struct external_auth_method *method;
	struct client_link *client; /* that logs in; until its login ends */
	struct loop *loop; /* of the client */
	bool away; /* at the first worker, for a login at another one */
	enum external_auth_state state; /* used by the first worker while it is away */
	struct deadline delayed; /* EXTERNAL_AUTH_DELAYED: when the refusal is sent */
	_Atomic bool abandoned; /* the login has ended: no check is needed any more */
	struct external_auth_queue **place; /* where the first worker has the queue */
	struct mail mail, withdrawal; /* there and back */
	bool answered, withdrawn; /* used by the first worker: it has the mail to send back */

	/* The input of the check. The texts are owned, and wiped at the end. */
	char *user, *password;
	struct ldap_options ldap; /* which LDAP server, and how */
	char remote[ADDRESS_TEXT_SIZE]; /* the client's address, or `unix` */

	/* The output of the check. */
	enum external_auth_answer answer;
	bool expired; /* the password was right, but it or the account has expired */
	usec_t delay; /* the refusal of a wrong password is sent no sooner than this */
	char why[256]; /* for the log, unless the answer is RIGHT */
};

struct external_auth_queue;

/*
 * Make a request for this user name and this password of `length` bytes, which are copied.
 * Returns NULL when out of memory.
 */
struct external_auth *external_auth_new(const char *user, const void *password, size_t length);

/* Wipe and free a request that was not started. */
void external_auth_free(struct external_auth *request);

/*
 * Start the check for a client that is logging in. `place` is a member of the first registry; if
 * it is NULL the queue is made. The request is taken over, in any case. The result goes to the
 * proceed step of the client's login, in a later turn. Returns false when out of memory.
 */
bool external_auth_start(struct client_link *client, struct external_auth_queue **place,
	const struct external_auth_method *method, struct external_auth *request);

/* The login has ended: drop its request, which is freed now or when its check has ended. */
void external_auth_abandon(struct external_auth *request);

/*
 * Free a queue at the end of the process, when there are no clients any more. NULL is allowed.
 * Returns the number of threads that are still blocked in a check: while there are any, the
 * process must not run the exit handlers of the libraries that they use.
 */
unsigned external_auth_queue_free(struct external_auth_queue *queue);

#endif
