/* SPDX-License-Identifier: ISC */
/*
 * Conversations written as letters: `TDCZ` is RowDescription, DataRow, CommandComplete and
 * ReadyForQuery. Each letter stands for one small, well-formed message of its kind.
 *
 * Besides the protocol's own letters: `Z` is ReadyForQuery outside of a transaction, `>` inside
 * of one, `!` inside of one that has failed; `^` is a message without a letter (of a start-up).
 */
#ifndef PGUSHER_TEST_LETTERS_H
#define PGUSHER_TEST_LETTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

enum speaker { CLIENT_SPEAKS, SERVER_SPEAKS };

/* Append the messages for these letters. */
void letters_write(struct buffer *buffer, enum speaker speaker, const char *letters);

/* Append a RowDescription of so many columns. */
void letters_write_description(struct buffer *buffer, unsigned columns);

/*
 * The message at the front of these bytes: its letter and its whole size. 0: not all of it is
 * there, or nothing. The very first message of a client is told by its first byte.
 */
char letters_read(const uint8_t *data, size_t length, size_t *total);

#endif
