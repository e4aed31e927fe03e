/* SPDX-License-Identifier: ISC */
/*
 * A pooler without a process: a registry made from the text of a configuration, on a loop with
 * the test's clock and random bytes, and with scripted clients and servers. A test may have several
 * workers, each with a registry and a loop, which all belong to the thread of the test.
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
struct endpoint {
	LIST_ENTRY(endpoint) entry;
	struct script *script;
	struct sockaddr_storage where; /* of a server: as stream_connect() was told */
	struct link *link; /* valid until the connection is closed: see endpoint_link() */
	struct stream away; /* of a client that is in the mail: see fake_is_in_mail() */
	int key; /* its descriptor, by which it is found when the mail is delivered; 0: none */
	enum sender sender;
	size_t read_offset; /* bytes of our output that read_letters() has returned */
	size_t last; /* start of the last message that read_letters() returned */
	size_t answered_offset; /* bytes of our output that fake_postgres has answered */
	char letters[32768]; /* the last result of read_letters() */
	char severity[16], sqlstate[8],
		text[256]; /* of the last error that read_letters() returned */
	void *backend; /* data of fake_postgres; freed with free() */
};

extern struct loop fake_loop;
extern struct process fake_process;
extern struct registry fake_registry;

enum { FAKE_WORKERS_MOST = 4 };

/* How many workers the next fake_start() makes; fake_end() sets it to 1. */
extern unsigned fake_workers;

/* The registry of this worker; that of worker 0 is fake_registry. */
struct registry *fake_registry_of(unsigned worker);

/* How often each hook of the console was called. */
extern struct fake_console {
	unsigned begun, readable, canceled, closed;
} fake_console;

/* While not 0, connects to servers fail at once with this errno. */
extern int fake_connect_error;

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
unsigned fake_log_count(const char *text);

/* Changes one setting, as SET does. */
void fake_set(const char *name, const char *value);

/* Runs one turn of each loop without waiting, then checks all invariants. */
void fake_turn(void);

/* Runs turns until no mail is left, then checks all invariants. */
void fake_deliver(void);

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
struct endpoint *fake_client(struct pool *pool);

/* A server that has logged in, and is idle: the first of the list. */
struct endpoint *fake_server(struct pool *pool);

/*
 * A client that has just connected, from 192.0.2.1, with this descriptor. With several workers the next
 * one in turn (process.dealt) begins its login, perhaps after a turn of its loop.
 */
struct endpoint *fake_accept(int fd);

/* Is the client between two workers? It has no link then. */
bool fake_is_in_mail(const struct endpoint *endpoint);

/*
 * The oldest launched server connection that was not returned here yet. NULL if there is none.
 */
struct endpoint *fake_launched(void);

/* Iterates over all clients and servers, closed ones too. NULL starts, NULL ends. */
struct endpoint *fake_next_endpoint(struct endpoint *after);

/* Frees a closed client or server before fake_end(). */
void fake_forget(struct endpoint *endpoint);

/* The connect has ended with this errno, or with success (0). */
void fake_connected(struct endpoint *server, int error);

/* The link, which must be neither closed nor in the mail. */
struct link *endpoint_link(const struct endpoint *endpoint);

static inline struct client_link *endpoint_client(const struct endpoint *endpoint)
{
	return client_of(endpoint_link(endpoint));
}

static inline struct server_link *endpoint_server(const struct endpoint *endpoint)
{
	return server_of(endpoint_link(endpoint));
}

bool is_closed(const struct endpoint *endpoint);

/* The client or server sends messages, all of them are read, and the turn ends. */
void send_letters(struct endpoint *endpoint, const char *letters);
void send_bytes(struct endpoint *endpoint, const void *data, size_t length);
void send_query(struct endpoint *client, const char *sql);
void send_error(struct endpoint *server, const char *sqlstate, const char *text);
void send_parameter_status(struct endpoint *server, const char *name, const char *value);

/* Sends a StartupMessage with these pairs of names and values; NULL ends them. */
void send_startup(struct endpoint *client, uint32_t version, ...) __attribute__((sentinel));

/* Sends the contents of the buffer, and frees it. */
void send_buffer(struct endpoint *endpoint, struct buffer *buffer);

/* Closes that side of the connection, or breaks the connection; the turn ends. */
void disconnect(struct endpoint *endpoint);
void break_connection(struct endpoint *endpoint);

/* From now on this many bytes are taken; SCRIPTED_ANY: no limit. The turn ends. */
void allow_output(struct endpoint *endpoint, size_t room);

/*
 * The letters of the messages received since the last call. `~` at the end stands for an
 * incomplete message.
 */
const char *read_letters(struct endpoint *endpoint);

/* The number of bytes received since the script's output was last forgotten. */
size_t received_length(const struct endpoint *endpoint);

/* The body of the last message that read_letters() returned. */
const uint8_t *received_body(const struct endpoint *endpoint, size_t *length);

/* --- expectations ------------------------------------------------------------------------- */

#define assert_received(endpoint, expected)                                                    \
	assert_string_equal(read_letters(endpoint), expected)

#define assert_state(endpoint, expected)                                                       \
	assert_int_equal(endpoint_link(endpoint)->state, expected)

#define assert_closed(endpoint) assert_true(is_closed(endpoint))

/*
 * The connection was closed, and the only message received is a FATAL error with this code and
 * text.
 */
#define assert_closed_with_error(end, code, message)                                           \
	do {                                                                                   \
		struct endpoint *const closed_end = (end);                                     \
                                                                                               \
		assert_string_equal(read_letters(closed_end), "E");                            \
		assert_string_equal(closed_end->text, message);                                \
		assert_string_equal(closed_end->sqlstate, code);                               \
		assert_string_equal(closed_end->severity, "FATAL");                            \
		assert_closed(closed_end);                                                     \
	} while (0)

/* The connection was closed, and no message was received. */
#define assert_closed_silently(end)                                                            \
	do {                                                                                   \
		struct endpoint *const closed_end = (end);                                     \
                                                                                               \
		assert_received(closed_end, "");                                               \
		assert_closed(closed_end);                                                     \
	} while (0)

/*
 * Keys are derived on another thread. This blocks it, so that no derivation ends too early.
 * Returns when the thread is blocked.
 */
void fake_block_helper(void);

/* Unblocks the helper. */
void fake_release_helper(void);

/* Unblocks the helper, and waits until no derivation is pending. */
void fake_wait_for_helper(void);

#endif
