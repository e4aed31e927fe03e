/* SPDX-License-Identifier: ISC */
/*
 * A row of SHOW FDS of an old PgBouncer: describes one descriptor that the process sends along.
 */
#ifndef PGUSHER_DAEMON_TAKEOVER_FDS_ROW_H
#define PGUSHER_DAEMON_TAKEOVER_FDS_ROW_H

#include "session/takeover/adoption.h"

struct fds_row;

/* Does the body of this DataRow describe a listening socket? */
bool fds_row_is_listener(const uint8_t *body, size_t length);

/*
 * Parse the body of a DataRow, which is copied. Returns NULL when out of memory, or if it is no
 * such row. Free it with fds_row_free().
 */
struct fds_row *fds_row_new(const uint8_t *body, size_t length);

/*
 * Add the connection of this row to the adoption. Takes over the descriptor, and closes it if
 * the connection cannot be used. The two links of a pair refer to each other by the numbers
 * that their descriptors had in the old process. The row must stay until adoption_activate().
 */
void fds_row_adopt(const struct fds_row *row, struct adoption *adoption, int fd);

/* NULL is allowed. */
void fds_row_free(struct fds_row *row);

#endif
