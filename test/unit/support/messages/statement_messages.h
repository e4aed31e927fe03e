/* SPDX-License-Identifier: ISC */
/* Messages with more content than a letter has: about statements, and errors of stale plans. */
#ifndef PGUSHER_TEST_STATEMENT_MESSAGES_H
#define PGUSHER_TEST_STATEMENT_MESSAGES_H

#include "base/buffer.h"

/* Parse of this text, without parameter types. */
void message_parse(struct buffer *out, const char *name, const char *text);

/* Bind of the unnamed portal, with one parameter of this size; 0: without parameters. */
void message_bind(struct buffer *out, const char *name, uint32_t parameter);

/* Close or Describe of a statement. */
void message_close(struct buffer *out, const char *name);
void message_describe(struct buffer *out, const char *name);

/* The error of a stale plan, as PostgreSQL sends it. */
void message_stale_plan_error(struct buffer *out);

#endif
