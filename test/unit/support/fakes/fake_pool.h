/* SPDX-License-Identifier: ISC */
/*
 * A pooler without a process: a registry made from the text of a configuration, on a loop with
 * the test's clock and random bytes, and with scripted clients and servers.
 *
 * All state is shared by the tests of one program: fake_start() creates it, fake_end() closes
 * every link and checks that nothing is left. A program that uses this file is linked with
 * stream_open() and stream_connect() wrapped (test/Makefile.inc): both then make scripted
 * streams.
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

/*
 * The other end of one of our connections: a client or a server. It exists until fake_end(),
 * also after the link was closed.
 */
struct actor {
	LIST_ENTRY(actor) entry;
	struct script *script;
	struct link *link; /* valid until the connection is closed: see actor_link() */
	enum speaker speaker;
	size_t heard; /* bytes of our output that hear() has returned */
	size_t last; /* start of the last message that hear() returned */
	size_t served; /* bytes of our output that fake_postgres has answered */
	char letters[32768]; /* the last result of hear() */
	char severity[16], sqlstate[8], text[256]; /* of the last error that hear() returned */
	void *backend; /* data of fake_postgres; freed with free() */
};

extern struct loop fake_loop;
extern struct process fake_process;
extern struct registry fake_registry;

/* How often each hook of the console was called. */
extern struct fake_console {
	unsigned begun, readable, canceled, closed;
} fake_console;

/* While true, connects to servers fail at once. */
extern bool fake_refuses_connects;

/* --- fixtures ----------------------------------------------------------------------------- */

void fake_start(const char *config);

/*
 * The same with one database `db`, in transaction mode without a reset query, unless these
 * settings of [pgbouncer] differ. Returns its pool for the user `alice`.
 */
struct pool *fake_start_pool(const char *settings);

/* For cmocka's tear-down: closes all links, and checks that nothing is left. */
int fake_end(void **state);

/* Is this text in the log since fake_start()? Debug lines are included. */
bool fake_logged(const char *text);

/* How often the text is in the log. */
unsigned fake_logged_times(const char *text);

/* Changes one setting, as SET does. */
void fake_set(const char *name, const char *value);

/* Runs one turn of the loop without waiting, then checks all invariants. */
void fake_turn(void);

/* Runs turns until this much time has passed. */
void fake_advance(usec_t time);

/* Runs a turn that waits for a helper thread. */
void fake_wait(void);

/* Checks that counts, lists, pairs and pauses are consistent. Valid between any two events. */
void fake_check(void);

/* A user with this secret, which is not copied; NULL: none. */
struct user *fake_user(const char *name, const char *secret);

/* The pool of this database and user. Its welcome message is known: AuthenticationOk only. */
struct pool *fake_pool(const char *database, const char *user);

/* --- clients and servers ------------------------------------------------------------------ */

/* A client that has logged in as the pool's user, and is idle. */
struct actor *fake_client(struct pool *pool);

/* A server that has logged in, and is idle: the first of the list. */
struct actor *fake_server(struct pool *pool);

/* A client that has just connected, from 192.0.2.1, with this descriptor. */
struct actor *fake_accept(int fd);

/*
 * The oldest launched server connection that was not returned here yet. NULL if there is none.
 */
struct actor *fake_launched(void);

/* Iterates over all clients and servers, closed ones too. NULL starts, NULL ends. */
struct actor *fake_next_actor(struct actor *after);

/* Frees a closed client or server before fake_end(). */
void fake_forget(struct actor *actor);

/* The connect has ended with this errno, or with success (0). */
void fake_connected(struct actor *server, int error);

/* The link, which must not be closed. */
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

/* The client or server sends messages, all of them are read, and the turn ends. */
void say(struct actor *actor, const char *letters);
void say_bytes(struct actor *actor, const void *data, size_t length);
void say_query(struct actor *client, const char *sql);
void say_error(struct actor *server, const char *sqlstate, const char *text);
void say_parameter(struct actor *server, const char *name, const char *value);

/* Sends a StartupMessage with these pairs of names and values; NULL ends them. */
void say_startup(struct actor *client, uint32_t version, ...) __attribute__((sentinel));

/* Sends the contents of the buffer, and frees it. */
void say_buffer(struct actor *actor, struct buffer *buffer);

/* leave() closes that side of the connection, vanish() breaks the connection; the turn ends. */
void leave(struct actor *actor);
void vanish(struct actor *actor);

/* From now on this many bytes are taken; SCRIPTED_ANY: no limit. The turn ends. */
void allow(struct actor *actor, size_t room);

/*
 * The letters of the messages received since the last call. `~` at the end stands for an
 * incomplete message.
 */
const char *hear(struct actor *actor);

/* The number of bytes received since the script's output was last forgotten. */
size_t heard_bytes(const struct actor *actor);

/* The body of the last message that hear() returned. */
const uint8_t *heard_body(const struct actor *actor, size_t *length);

/* --- expectations ------------------------------------------------------------------------- */

#define assert_heard(actor, expected) assert_string_equal(hear(actor), expected)

#define assert_state(actor, expected) assert_int_equal(actor_link(actor)->state, expected)

#define assert_gone(actor) assert_true(is_gone(actor))

/*
 * The connection was closed, and the only message received is a FATAL error with this code and
 * text.
 */
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

/* The connection was closed, and no message was received. */
#define assert_dropped(who)                                                                    \
	do {                                                                                   \
		struct actor *const dropped = (who);                                           \
                                                                                               \
		assert_heard(dropped, "");                                                     \
		assert_gone(dropped);                                                          \
	} while (0)

/*
 * Keys are derived on another thread. This blocks it, so that no derivation ends too early. The
 * job that blocks it counts as pending too.
 */
void fake_hold_up_helper(void);

/* Unblocks the helper, and waits until no job is pending. */
void fake_wait_for_helper(void);

#endif
