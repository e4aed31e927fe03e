/* SPDX-License-Identifier: ISC */
/*
 * Passwords that somebody else judges: an LDAP server, PAM modules. Asking them blocks, and for
 * long when they are in trouble, so that it is done on helper threads.
 *
 * An request is one password of one login. Each authority has a queue, with threads of its own
 * and a bounded queue; who comes when that is full waits in front of it, in order, for as long as
 * a login may take. A client that leaves abandons its request: whatever comes of it is dropped.
 */
#ifndef PGUSHER_SESSION_AUTH_EXTERNAL_AUTH_H
#define PGUSHER_SESSION_AUTH_EXTERNAL_AUTH_H

#include "config/ldap_options.h"
#include "model/registry.h"

enum external_auth_answer {
	EXTERNAL_AUTH_WRONG, /* the password, or the name */
	EXTERNAL_AUTH_RIGHT,
	EXTERNAL_AUTH_FAILED, /* nobody could tell */
};

enum external_auth_state { EXTERNAL_AUTH_WAITS, EXTERNAL_AUTH_ASKED, EXTERNAL_AUTH_HELD };

struct external_auth;

/* Who decides; ask() runs on a thread and touches nothing but the external_auth request. */
struct external_auth_method {
	const char *name;
	void (*ask)(struct external_auth *request);
};

struct external_auth {
	struct helper_job job;
	TAILQ_ENTRY(external_auth) entry; /* EXTERNAL_AUTH_WAITS: in queue->waiting */
	struct external_auth_queue *queue;
	const struct external_auth_method *authority;
	enum external_auth_state state;
	struct deadline held; /* EXTERNAL_AUTH_HELD: when the refusal is told */
	_Atomic bool abandoned; /* nobody wants to know any more */

	/* What is asked; the texts are owned, and wiped at the end. */
	char *user, *password;
	struct ldap_options ldap; /* where to ask */
	char remote[ADDRESS_TEXT_SIZE]; /* where the client is: `unix` or an address */

	/* What the thread found out. */
	enum external_auth_answer answer;
	bool expired; /* wrong for being too old */
	usec_t delay; /* a wrong password is told no sooner than this */
	char why[256]; /* for the log, unless it was right */
};

struct external_auth_queue;

/* A request about this name and password of `length` bytes; NULL: no memory. */
struct external_auth *external_auth_new(const char *user, const void *password, size_t length);

/* Wipe and free one that was not started. */
void external_auth_free(struct external_auth *request);

/*
 * Ask, on behalf of a client that is logging in. The queue is made if it is NULL; the request is
 * taken over. The login is taken up again by client_login_proceed(). False: no memory.
 */
bool external_auth_start(struct client_link *client, struct external_auth_queue **queue,
	const struct external_auth_method *authority, struct external_auth *request);

/* The login has ended. */
void external_auth_abandon(struct external_auth *request);

/*
 * Close a queue at the end of the process, when no client is left. NULL is nothing. How many threads
 * are left behind that still ask: while they do exit() must not take apart what they ask with.
 */
unsigned external_auth_queue_free(struct external_auth_queue *queue);

#endif
