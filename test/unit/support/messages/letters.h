/* SPDX-License-Identifier: ISC */
/*
 * Protocol messages written as letters: `TDCZ` is RowDescription, DataRow, CommandComplete and
 * ReadyForQuery. Each letter stands for one small, well-formed message of its type.
 *
 * Besides the type bytes of the protocol: `Z` is ReadyForQuery outside of a transaction, `>`
 * inside of a transaction, `!` inside of a failed one; `^` is a message without a type byte (of
 * a startup).
 */
#ifndef PGUSHER_TEST_LETTERS_H
#define PGUSHER_TEST_LETTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

enum sender { FROM_CLIENT, FROM_SERVER };

/* Appends the messages for these letters. */
void letters_write(struct buffer *buffer, enum sender sender, const char *letters);

/* Appends a RowDescription with this number of columns. */
void letters_write_description(struct buffer *buffer, unsigned columns);

/*
 * The first message of these bytes: its letter, and its total size. Returns 0 when it is
 * incomplete. The very first message of a client is recognized by its first byte.
 */
char letters_read(const uint8_t *data, size_t length, size_t *total);

#endif
