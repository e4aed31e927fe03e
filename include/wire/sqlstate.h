/* SPDX-License-Identifier: ISC */
/* Classes of SQLSTATEs, their first two characters. PostgreSQL: appendix "Error Codes". */
#ifndef PGUSHER_WIRE_SQLSTATE_H
#define PGUSHER_WIRE_SQLSTATE_H

enum { SQLSTATE_CLASSES = 44 };

/* Sorted; "XX" is the last. */
extern const char *const sqlstate_classes[SQLSTATE_CLASSES];

/*
 * The class of an SQLSTATE, as an index of sqlstate_classes. NULL, malformed codes, and
 * classes that PostgreSQL does not have (applications may define their own) count as XX.
 */
unsigned sqlstate_class(const char *sqlstate);

#endif
