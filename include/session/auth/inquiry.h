/* SPDX-License-Identifier: ISC */
/*
 * Passwords that somebody else judges: an LDAP server, PAM modules. Asking them blocks, and for
 * long when they are in trouble, so that it is done on helper threads.
 *
 * An inquiry is one password of one login. Each authority has a desk, with threads of its own
 * and a bounded queue; who comes when that is full waits in front of it, in order, for as long as
 * a login may take. A client that leaves abandons its inquiry: whatever comes of it is dropped.
 */
#ifndef PGUSHER_SESSION_AUTH_INQUIRY_H
#define PGUSHER_SESSION_AUTH_INQUIRY_H

#include "config/ldap_options.h"
#include "model/registry.h"

enum inquiry_answer {
	INQUIRY_WRONG, /* the password, or the name */
	INQUIRY_RIGHT,
	INQUIRY_FAILED, /* nobody could tell */
};

enum inquiry_state { INQUIRY_WAITS, INQUIRY_ASKED, INQUIRY_HELD };

struct inquiry;

/* Who decides; ask() runs on a thread and touches nothing but the inquiry. */
struct inquiry_authority {
	const char *name;
	void (*ask)(struct inquiry *inquiry);
};

struct inquiry {
	struct helper_job job;
	TAILQ_ENTRY(inquiry) entry; /* INQUIRY_WAITS: in desk->waiting */
	struct inquiry_desk *desk;
	const struct inquiry_authority *authority;
	enum inquiry_state state;
	struct deadline held; /* INQUIRY_HELD: when the refusal is told */
	_Atomic bool abandoned; /* nobody wants to know any more */

	/* What is asked; the texts are owned, and wiped at the end. */
	char *user, *password;
	struct ldap_options ldap; /* where to ask */
	char remote[ADDRESS_TEXT_SIZE]; /* where the client is: `unix` or an address */

	/* What the thread found out. */
	enum inquiry_answer answer;
	bool expired; /* wrong for being too old */
	usec_t delay; /* a wrong password is told no sooner than this */
	char why[256]; /* for the log, unless it was right */
};

struct inquiry_desk;

/* An inquiry about this name and password of `length` bytes; NULL: no memory. */
struct inquiry *inquiry_new(const char *user, const void *password, size_t length);

/* Wipe and free one that was not started. */
void inquiry_free(struct inquiry *inquiry);

/*
 * Ask, on behalf of a client that is logging in. The desk is made if it is NULL; the inquiry is
 * taken over. The login is taken up again by client_login_proceed(). False: no memory.
 */
bool inquiry_start(struct client_link *client, struct inquiry_desk **desk,
	const struct inquiry_authority *authority, struct inquiry *inquiry);

/* The login has ended. */
void inquiry_abandon(struct inquiry *inquiry);

/*
 * Close a desk at the end of the process, when no client is left. NULL is nothing. How many threads
 * are left behind that still ask: while they do exit() must not take apart what they ask with.
 */
unsigned inquiry_desk_free(struct inquiry_desk *desk);

#endif
