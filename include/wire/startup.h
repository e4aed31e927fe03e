/* SPDX-License-Identifier: ISC */
/*
 * The first messages of a connection: startup, requests for encryption, cancel requests. They
 * have no letter, but a length and a number that says what they are.
 *
 * Read on the client's side, built on the server's side. Nothing is decided here: what an
 * unknown parameter leads to, or a login without TLS, is for the session. Nothing is changed in
 * a message either, so that one can be read again when a login has to wait.
 * Protocol: "Message Flow", Start-up; "Message Formats", StartupMessage, CancelRequest.
 */
#ifndef PGUSHER_WIRE_STARTUP_H
#define PGUSHER_WIRE_STARTUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "wire/message.h"
#include "wire/reader.h"

enum {
	STARTUP_HEADER_SIZE = 8, /* length and code */
	STARTUP_TOTAL_MAX = 65535,
	/* A cancel key as BackendKeyData carries it, the process number included. */
	STARTUP_KEY_MIN = 8,
	STARTUP_KEY_MAX = 4 + 256,
};

enum startup_kind {
	STARTUP_INCOMPLETE, /* more bytes are needed */
	STARTUP_MALFORMED, /* a length that cannot be, or an unknown code */
	STARTUP_SSL_REQUEST,
	STARTUP_GSSENC_REQUEST,
	STARTUP_CANCEL,
	STARTUP_PROTOCOL_2,
	STARTUP_LOGIN, /* protocol 3, any minor version */
};

/*
 * What is the message without a letter (first byte 0) at the front? A kind other than the first
 * two is told only when the message is whole, and sets `*total` to its size. For an incomplete
 * one `*total` is its size too, or 0 while fewer than STARTUP_HEADER_SIZE bytes are there.
 */
enum startup_kind startup_peek(const uint8_t *data, size_t available, size_t *total);

/* ---- What the client wants -------------------------------------------------------------- */

enum startup_replication {
	REPLICATION_NONE,
	REPLICATION_LOGICAL, /* said `database` */
	REPLICATION_PHYSICAL, /* said a word that PostgreSQL takes as true */
};

/* What the value of the parameter `replication` asks for; nonsense asks for nothing. */
enum startup_replication startup_replication_word(const char *value);

enum startup_result {
	STARTUP_GOOD,
	STARTUP_BAD_LAYOUT, /* a text without end, no terminator, or bytes behind it */
	STARTUP_NO_USER,
};

/* The parameters with a meaning of their own. The texts point into the message. */
struct startup_login {
	uint32_t version; /* as asked for */
	const char *user; /* not empty */
	const char *database; /* the user's name if none was given */
	const char *options; /* NULL: none given */
	enum startup_replication replication;
	uint32_t unknown_options; /* how many parameters are called `_pq_.` something */
};

/*
 * Read a whole StartupMessage for the first time. Of a repeated parameter the last counts.
 * `*login` is set when the layout is good, also if the user is missing (NULL then).
 */
enum startup_result startup_read(
	const uint8_t *data, size_t total, struct startup_login *login);

/* ---- Its parameters in order ------------------------------------------------------------ */

enum startup_step {
	STARTUP_PARAMETER, /* there is one more */
	STARTUP_END,
	STARTUP_BROKEN, /* layout of the message, or grammar of the options */
	STARTUP_NO_MEMORY,
};

/* All pairs of name and value of a StartupMessage. */
struct startup_walk {
	struct reader reader;
};

void startup_walk_begin(struct startup_walk *walk, const uint8_t *data, size_t total);

/* The next pair, pointing into the message. Broken: as STARTUP_BAD_LAYOUT. */
enum startup_step startup_walk_next(
	struct startup_walk *walk, const char **name, const char **value);

/*
 * The settings in the text of an `options` parameter: `-c name=value`, `-cname=value` and
 * `--name=value`; a backslash takes the next character as it is, white space ends a setting.
 */
struct options_walk {
	const char *at;
	struct buffer text; /* one setting without its backslashes */
};

void options_walk_begin(struct options_walk *walk, const char *options);

/* The next setting; name and value are good until the next call. Broken: anything else. */
enum startup_step options_walk_next(
	struct options_walk *walk, const char **name, const char **value);

/* Let the memory go, after any step. */
void options_walk_end(struct options_walk *walk);

/*
 * The settings that the client wants for its session, in the order of the message: parameters
 * without a meaning of their own (see struct startup_login) and those inside `options`, at the
 * place of that parameter. The options of a replication client are passed over.
 */
struct startup_settings {
	const struct startup_login *login;
	struct startup_walk parameters;
	struct options_walk options;
	bool in_options; /* the setting returned last came from there */
};

void startup_settings_begin(struct startup_settings *walk, const struct startup_login *login,
	const uint8_t *data, size_t total);

/* The next setting; name and value are good until the next call. Broken: the options. */
enum startup_step startup_settings_next(
	struct startup_settings *walk, const char **name, const char **value);

/* Let the memory go, after any step. */
void startup_settings_end(struct startup_settings *walk);

/* ---- Version ---------------------------------------------------------------------------- */

/* The newest version that we speak and that is not above the one asked for. */
uint32_t startup_version_spoken(uint32_t asked);

/*
 * Append NegotiateProtocolVersion, with the unknown options in the order of the message, if the
 * client has to be told: it asked for another version than it gets, or named such options.
 * Returns whether it had to be.
 */
bool startup_write_negotiation(struct buffer *buffer, const struct startup_login *login,
	const uint8_t *data, size_t total);

/* ---- Cancel ----------------------------------------------------------------------------- */

/*
 * The key in a whole CancelRequest: process number and secret together, as BackendKeyData gave
 * them. NULL: a length that no key has.
 */
const uint8_t *startup_cancel_key(const uint8_t *data, size_t total, size_t *length);

/* ---- Towards servers -------------------------------------------------------------------- */

/*
 * A StartupMessage: begin with the version, write pairs with writer_string(), end with the
 * mark that begin returned. As everywhere, `failed` of the buffer is looked at in the end.
 */
size_t startup_begin(struct buffer *buffer, uint32_t version);
void startup_end(struct buffer *buffer, size_t mark);

/* SSLRequest and the like: nothing but the code. */
void startup_write_request(struct buffer *buffer, uint32_t code);

void startup_write_cancel(struct buffer *buffer, const void *key, size_t length);

#endif
