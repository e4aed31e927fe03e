/* SPDX-License-Identifier: ISC */
/*
 * Decides which requests the page answers: those with page_password, where that is set, and those
 * that were meant for this server.
 *
 * A wrong password is answered a second later, and while as many of them wait as may, no other
 * password is looked at: guessing one takes long, whatever number of connections a guesser has. An
 * address from which the right password came has places of its own, so that guessers elsewhere do not
 * keep it out.
 *
 * Without password and TLS, a name in the Host header may be one that another site has for our address
 * (DNS rebinding), by which its scripts in a browser of our network could read the page: only
 * addresses, localhost and the name of this machine are allowed then.
 */
#ifndef PGUSHER_ADMIN_PAGE_PAGE_GUARD_H
#define PGUSHER_ADMIN_PAGE_PAGE_GUARD_H

#include "config/settings.h"
#include "net/http/http.h"

enum {
	PAGE_GUARD_STRANGERS = 8, /* wrong passwords of others that may wait */
	PAGE_GUARD_OF_ONE = 4, /* of an address that had the right one before */
	PAGE_GUARD_KNOWN = 16, /* such addresses */
	PAGE_GUARD_HELD = PAGE_GUARD_STRANGERS + PAGE_GUARD_OF_ONE * PAGE_GUARD_KNOWN,
};

#define PAGE_GUARD_DELAY USEC_PER_SEC

struct page_guard;

/* A request with a wrong password. */
struct held_request {
	struct deadline deadline;
	struct page_guard *guard;
	struct http_request *request; /* NULL: the place is free */
	struct address source;
	bool is_known;
};

struct page_guard {
	struct loop *loop;
	struct held_request held[PAGE_GUARD_HELD];
	struct address
		known[PAGE_GUARD_KNOWN]; /* AF_UNSPEC: none; the next one replaces next_known */
	unsigned next_known;
	char machine[256]; /* its name */
};

void page_guard_init(struct page_guard *guard, struct loop *loop);

/*
 * Returns whether the request may be answered. If not, the guard has taken it, and answers it now or
 * later. A password that was sent is wiped.
 */
bool page_guard_admits(struct page_guard *guard, struct http_request *request,
	const struct settings *settings);

/* Answer all requests that wait. */
void page_guard_stop(struct page_guard *guard);

/*
 * Whether a Host header names an address, localhost or this machine; with or without a port. Pure.
 */
bool page_guard_host_is_safe(const char *host, const char *machine);

/* Whether an Authorization header has this password, with any user name. Pure. */
bool page_guard_password_is(const char *header, const char *password);

#endif
