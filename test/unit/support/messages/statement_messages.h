/* SPDX-License-Identifier: ISC */
/* Messages that say more than a letter: about statements, and plans that are out of date. */
#ifndef PGUSHER_TEST_STATEMENT_MESSAGES_H
#define PGUSHER_TEST_STATEMENT_MESSAGES_H

#include "base/buffer.h"

/* Parse of this text, without types. */
void phrase_parse(struct buffer *out, const char *name, const char *text);

/* Bind to the portal without a name, with one parameter of so many bytes; 0: none. */
void phrase_bind(struct buffer *out, const char *name, uint32_t parameter);

/* Close or Describe of a statement. */
void phrase_close(struct buffer *out, const char *name);
void phrase_describe(struct buffer *out, const char *name);

/* The error of a plan out of date, as PostgreSQL says it. */
void phrase_stale(struct buffer *out);

#endif
