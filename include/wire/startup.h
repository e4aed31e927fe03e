/* SPDX-License-Identifier: ISC */
/*
 * The first messages of a connection: startup, requests for encryption, cancel requests. They
 * have no letter, only a length and a number that identifies the kind.
 *
 * Parsed from clients, built for servers. No decisions are made here: the session decides
 * about unknown parameters and logins without TLS. Parsing does not modify a message, so it
 * can be parsed again when a login has to wait. Protocol: "Message Flow", Start-up; "Message
 * Formats", StartupMessage, CancelRequest.
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
	/* Sizes of a cancel key as sent in BackendKeyData, process number included. */
	STARTUP_KEY_MIN = 8,
	STARTUP_KEY_MAX = 4 + 256,
};

enum startup_kind {
	STARTUP_INCOMPLETE, /* more bytes are needed */
	STARTUP_MALFORMED, /* impossible length, or unknown code */
	STARTUP_SSL_REQUEST,
	STARTUP_GSSENC_REQUEST,
	STARTUP_CANCEL,
	STARTUP_PEER_QUESTION, /* see wire/peer_question */
	STARTUP_PROTOCOL_2,
	STARTUP_LOGIN, /* protocol 3, any minor version */
};

/*
 * Identify the message without a letter (first byte 0) at the front. Kinds other than the
 * first two are returned only when the message is complete, with its size in `*total`. For an
 * incomplete one `*total` is its size as well, or 0 while fewer than STARTUP_HEADER_SIZE bytes
 * are available.
 */
enum startup_kind startup_peek(const uint8_t *data, size_t available, size_t *total);

/* ---- Login ------------------------------------------------------------------------------ */

enum startup_replication {
	REPLICATION_NONE,
	REPLICATION_LOGICAL, /* value `database` */
	REPLICATION_PHYSICAL, /* a value that PostgreSQL takes as true */
};

/*
 * The replication mode that a value of the parameter `replication` requests; an invalid value
 * requests none.
 */
enum startup_replication startup_replication_word(const char *value);

enum startup_result {
	STARTUP_GOOD,
	STARTUP_BAD_LAYOUT, /* text without NUL, no terminator, or bytes after it */
	STARTUP_NO_USER,
};

/* The parameters that are not settings. The texts point into the message. */
struct startup_login {
	uint32_t version; /* as requested */
	const char *user; /* not empty */
	const char *database; /* the user's name if missing */
	const char *options; /* NULL: missing */
	enum startup_replication replication;
	uint32_t unknown_options; /* number of parameters named `_pq_.` and more */
};

/*
 * Check a complete StartupMessage and read its special parameters. Of a repeated parameter the
 * last one counts. `*login` is set if the layout is valid, even if the user is missing (then
 * NULL).
 */
enum startup_result startup_read(
	const uint8_t *data, size_t total, struct startup_login *login);

/* ---- Parameters in order ---------------------------------------------------------------- */

enum startup_step {
	STARTUP_PARAMETER, /* the next one was stored */
	STARTUP_END,
	STARTUP_BROKEN, /* bad layout of the message, or bad syntax of the options */
	STARTUP_NO_MEMORY,
};

/* Iterator over all pairs of name and value of a StartupMessage. */
struct startup_walk {
	struct reader reader;
};

void startup_walk_begin(struct startup_walk *walk, const uint8_t *data, size_t total);

/*
 * Get the next pair, pointing into the message. STARTUP_BROKEN corresponds to
 * STARTUP_BAD_LAYOUT.
 */
enum startup_step startup_walk_next(
	struct startup_walk *walk, const char **name, const char **value);

/*
 * Iterator over the settings in the text of an `options` parameter: `-c name=value`,
 * `-cname=value` and `--name=value`. A backslash escapes the next character, white space
 * separates settings.
 */
struct options_walk {
	const char *at;
	struct buffer text; /* one setting, unescaped */
};

void options_walk_begin(struct options_walk *walk, const char *options);

/*
 * Get the next setting; name and value are valid until the next call. STARTUP_BROKEN for
 * anything that is not a setting.
 */
enum startup_step options_walk_next(
	struct options_walk *walk, const char **name, const char **value);

/* Free the iterator's memory; allowed after any step. */
void options_walk_end(struct options_walk *walk);

/*
 * Iterator over the settings that the client requests for its session, in the order of the
 * message: parameters other than those in struct startup_login, and the settings inside
 * `options`, at the place of that parameter. The options of a replication client are skipped.
 */
struct startup_settings {
	const struct startup_login *login;
	struct startup_walk parameters;
	struct options_walk options;
	bool in_options; /* the last setting came from `options` */
};

void startup_settings_begin(struct startup_settings *walk, const struct startup_login *login,
	const uint8_t *data, size_t total);

/*
 * Get the next setting; name and value are valid until the next call. STARTUP_BROKEN if
 * `options` is broken.
 */
enum startup_step startup_settings_next(
	struct startup_settings *walk, const char **name, const char **value);

/* Free the iterator's memory; allowed after any step. */
void startup_settings_end(struct startup_settings *walk);

/* ---- Version ---------------------------------------------------------------------------- */

/* The newest supported version that is not above the requested one. */
uint32_t startup_version_spoken(uint32_t asked);

/*
 * Append NegotiateProtocolVersion, with the unknown options in the order of the message, if it
 * is needed: the client requested another version than it gets, or unknown options. Returns
 * whether it was needed. Out of memory sets the buffer's `failed`.
 */
bool startup_write_negotiation(struct buffer *buffer, const struct startup_login *login,
	const uint8_t *data, size_t total);

/* ---- Cancel ----------------------------------------------------------------------------- */

/*
 * The key in a complete CancelRequest: process number and secret together, as in
 * BackendKeyData. Points into the message. Returns NULL if no key has this length.
 */
const uint8_t *startup_cancel_key(const uint8_t *data, size_t total, size_t *length);

/* ---- To servers ------------------------------------------------------------------------- */

/*
 * Build a StartupMessage: begin with the version, write pairs with writer_string(), end with
 * the mark that begin returned. Out of memory sets the buffer's `failed`.
 */
size_t startup_begin(struct buffer *buffer, uint32_t version);
void startup_end(struct buffer *buffer, size_t mark);

/* Append an SSLRequest or similar: a message with only a code. */
void startup_write_request(struct buffer *buffer, uint32_t code);

void startup_write_cancel(struct buffer *buffer, const void *key, size_t length);

#endif
