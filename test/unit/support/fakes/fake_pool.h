/* SPDX-License-Identifier: ISC */
/*
 * A pooler without a process: a registry made from a configuration's text, on a loop whose clock
 * and random bytes are the test's, with clients and servers that are scripts.
 *
 * All there is is shared by the tests of one program; fake_start() makes it, fake_end() closes
 * every link and looks that nothing is left. A program that uses this is linked with
 * stream_open() and stream_connect() wrapped (test/Makefile.inc): both then make scripted streams.
 */
#ifndef PGUSHER_TEST_FAKE_POOL_H
#define PGUSHER_TEST_FAKE_POOL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/registry.h"
#include "support/fakes/scripted_stream.h"
#include "support/messages/letters.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The other end of one of our connections. Lives until fake_end(), also when the link is gone. */
struct actor {
	LIST_ENTRY(actor) entry;
	struct script *script;
	struct link *link; /* good until the connection is closed: see actor_link() */
	enum speaker speaker;
	size_t heard; /* of what we sent: how much hear() has told */
	size_t last; /* where the message began that it told last */
	size_t served; /* and how much fake_postgres has answered */
	char letters[32768]; /* what hear() returned last */
	char severity[16], sqlstate[8], text[256]; /* of the last error it told */
	void *backend; /* fake_postgres's; freed with free() */
};

extern struct loop fake_loop;
extern struct process fake_process;
extern struct registry fake_registry;

/* What became of the console's hooks. */
extern struct fake_console {
	unsigned begun, readable, canceled, closed;
} fake_console;

/* The next connections fail at once. */
extern bool fake_refuses_connects;

/* --- the stage ---------------------------------------------------------------------------- */

void fake_start(const char *config);

/*
 * The same with one database `db`, in transaction mode without a reset query but for what these
 * settings of [pgbouncer] say. Returns its pool for the user `alice`.
 */
struct pool *fake_start_pool(const char *settings);

/* For cmocka's tear-down: close all, and see that nothing is left over. */
int fake_end(void **state);

/* Has a line of the log said this since fake_start()? Debug lines are there too. */
bool fake_logged(const char *text);

/* And in how many places? */
unsigned fake_logged_times(const char *text);

/* Change one setting, as SET does. */
void fake_set(const char *name, const char *value);

/* One turn of the loop, without waiting; then all invariants are looked at. */
void fake_turn(void);

/* Turns until this much time has passed. */
void fake_advance(usec_t time);

/* A turn that waits for a helper thread. */
void fake_wait(void);

/* Counts, lists, pairs and pauses are as they must be, between any two events. */
void fake_check(void);

/* A user with this secret, which is not copied; NULL: none. */
struct user *fake_user(const char *name, const char *secret);

/* The pool of these two, which knows its welcome: nothing but AuthenticationOk. */
struct pool *fake_pool(const char *database, const char *user);

/* --- the actors --------------------------------------------------------------------------- */

/* A client that has logged in (as the pool's user), and is idle. */
struct actor *fake_client(struct pool *pool);

/* A server that has logged in, and is idle: the first of the list. */
struct actor *fake_server(struct pool *pool);

/* A client that has just connected, from 192.0.2.1, under this descriptor. */
struct actor *fake_accept(int fd);

/* The oldest server connection that was launched and not asked for here yet; NULL: none. */
struct actor *fake_launched(void);

/* All of them, those that are gone too: NULL starts, NULL ends. */
struct actor *fake_next_actor(struct actor *after);

/* It is gone, and nobody will ask for it any more: free it before the end. */
void fake_forget(struct actor *actor);

/* Its connect has ended: an errno, or 0. */
void fake_connected(struct actor *server, int error);

/* The link, which must be open. */
struct link *actor_link(const struct actor *actor);

static inline struct client_link *actor_client(const struct actor *actor)
{
	return client_of(actor_link(actor));
}

static inline struct server_link *actor_server(const struct actor *actor)
{
	return server_of(actor_link(actor));
}

bool is_gone(const struct actor *actor);

/* It says something, all of that is read, and the turn ends. */
void say(struct actor *actor, const char *letters);
void say_bytes(struct actor *actor, const void *data, size_t length);
void say_query(struct actor *client, const char *sql);
void say_error(struct actor *server, const char *sqlstate, const char *text);
void say_parameter(struct actor *server, const char *name, const char *value);

/* A StartupMessage with these pairs of names and values; NULL ends them. */
void say_startup(struct actor *client, uint32_t version, ...) __attribute__((sentinel));

/* Say what stands in the buffer, and free that. */
void say_buffer(struct actor *actor, struct buffer *buffer);

/* Its side of the connection is closed, or the connection breaks; the turn ends. */
void leave(struct actor *actor);
void vanish(struct actor *actor);

/* Take no more than this from now on; SCRIPTED_ANY: everything. The turn ends. */
void allow(struct actor *actor, size_t room);

/* The letters of what it was sent since it was last asked; `~` at the end: half a message. */
const char *hear(struct actor *actor);

/* How many bytes it was sent since its script's output was last forgotten. */
size_t heard_bytes(const struct actor *actor);

/* The message that hear() told last: its body. */
const uint8_t *heard_body(const struct actor *actor, size_t *length);

/* --- what is expected --------------------------------------------------------------------- */

#define assert_heard(actor, expected) assert_string_equal(hear(actor), expected)

#define assert_state(actor, expected) assert_int_equal(actor_link(actor)->state, expected)

#define assert_gone(actor) assert_true(is_gone(actor))

/* It was closed, and a FATAL error with this code and text was the last it heard. */
#define assert_told(who, code, words)                                                          \
	do {                                                                                   \
		struct actor *const told = (who);                                              \
                                                                                               \
		assert_string_equal(hear(told), "E");                                          \
		assert_string_equal(told->text, words);                                        \
		assert_string_equal(told->sqlstate, code);                                     \
		assert_string_equal(told->severity, "FATAL");                                  \
		assert_gone(told);                                                             \
	} while (0)

/* It was closed without a word. */
#define assert_dropped(who)                                                                    \
	do {                                                                                   \
		struct actor *const dropped = (who);                                           \
                                                                                               \
		assert_heard(dropped, "");                                                     \
		assert_gone(dropped);                                                          \
	} while (0)

/*
 * Keys are derived on another thread. This holds it up, so that nothing comes of it too early; the
 * job that does counts as pending too.
 */
void fake_hold_up_helper(void);

/* Let it go on, and wait until nothing is pending. */
void fake_wait_for_helper(void);

#endif
