/* SPDX-License-Identifier: ISC */
/*
 * A row of a PgBouncer's SHOW FDS: a descriptor, and what its new owner is told about it.
 */
#ifndef PGUSHER_DAEMON_FDS_ROW_H
#define PGUSHER_DAEMON_FDS_ROW_H

#include "session/takeover/adoption.h"

struct fds_row;

/* Is the body of this DataRow about a listening socket? */
bool fds_row_is_listener(const uint8_t *body, size_t length);

/* From the body of a DataRow. NULL: no memory, or it is no such row. */
struct fds_row *fds_row_new(const uint8_t *body, size_t length);

/*
 * Have the connection adopted, whose descriptor is taken over. Pairs are told by the numbers that
 * the descriptors had in the old process. The row must stay until the adoption wakes.
 */
void fds_row_adopt(const struct fds_row *row, struct adoption *adoption, int fd);

/* NULL is allowed. */
void fds_row_free(struct fds_row *row);

#endif
