/* SPDX-License-Identifier: ISC */
/*
 * Understands statements that change the session and stand by themselves: SET, RESET, PREPARE,
 * EXECUTE, DEALLOCATE, LISTEN, UNLISTEN, DISCARD. There is no parser of SQL here: whatever is not
 * exactly one such statement, read with certainty, is SESSION_UNKNOWN, and the server knows best.
 */
#ifndef PGUSHER_WIRE_SESSION_COMMAND_H
#define PGUSHER_WIRE_SESSION_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum session_verb {
	SESSION_UNKNOWN,
	SESSION_SET, /* for the session: name and value are known */
	SESSION_SET_LOCAL, /* for the transaction only, whatever it sets */
	SESSION_RESET, /* SET name TO DEFAULT, too */
	SESSION_RESET_ALL,
	SESSION_DISCARD_ALL,
	SESSION_PREPARE,
	SESSION_EXECUTE, /* EXPLAIN EXECUTE and CREATE TABLE ... AS EXECUTE, too */
	SESSION_DEALLOCATE,
	SESSION_DEALLOCATE_ALL,
	SESSION_LISTEN,
	SESSION_UNLISTEN,
	SESSION_UNLISTEN_ALL,
};

/* What the text depends on. */
struct session_lexis {
	bool escapes; /* standard_conforming_strings is off */
	/* Bytes from 0x80 on are never part of a character with a byte below: UTF8, LATIN1, ... */
	bool safe_encoding;
	/* Only the beginning of the text is there: an EXECUTE counts if its arguments begin. */
	bool partial;
};

struct session_command {
	enum session_verb verb;
	/*
	 * The parameter in lower case, the name of the statement or the channel; with a NUL. As the
	 * server reads it: at most 63 bytes.
	 */
	struct buffer name;
	/*
	 * SESSION_SET: the value as text, with a NUL. A list of names is in the form that
	 * set_config() takes.
	 */
	struct buffer value;
	/* PREPARE, EXECUTE: where the statement's name begins, with its quotes, and where it ends. */
	size_t name_begin, name_end;
	/* PREPARE: where its types or AS begin; EXECUTE: where its arguments begin, or its end. */
	size_t rest;
};

void session_command_init(struct session_command *command);

/* Free what it has. It can be used again. */
void session_command_free(struct session_command *command);

/*
 * Read a text of `length` bytes, which may end with a NUL. Returns its verb, which
 * command->verb has too; SESSION_UNKNOWN also when out of memory.
 */
enum session_verb session_command_read(const char *text, size_t length,
	struct session_lexis lexis, struct session_command *command);

#endif
