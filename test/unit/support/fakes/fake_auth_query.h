/* SPDX-License-Identifier: ISC */
/* Answers of a scripted server to auth_query. */
#ifndef PGUSHER_TEST_FAKE_AUTH_QUERY_H
#define PGUSHER_TEST_FAKE_AUTH_QUERY_H

#include "support/fakes/fake_pool.h"

/* Appends a value of a DataRow; NULL is NULL. */
void write_value(struct buffer *out, const char *value);

/* Appends the row with this name and secret. */
void write_row(struct buffer *out, const char *name, const char *secret);

/* Makes the buffer, with all that comes before the rows. */
void write_row_description(struct buffer *out);

/* The server has found no user, or this one. */
void answer_no_row(struct endpoint *server);
void answer(struct endpoint *server, const char *name, const char *secret);

#endif
