/* SPDX-License-Identifier: ISC */
/* The classes of SQLSTATE, its first two characters. PostgreSQL: appendix "Error Codes". */
#ifndef PGUSHER_WIRE_SQLSTATE_H
#define PGUSHER_WIRE_SQLSTATE_H

enum { SQLSTATE_CLASSES = 44 };

/* Sorted; "XX" is the last. */
extern const char *const sqlstate_classes[SQLSTATE_CLASSES];

/*
 * The class of a code, as an index of sqlstate_classes. NULL, what is no code, and classes that
 * PostgreSQL does not have (users may make up their own) are all XX.
 */
unsigned sqlstate_class(const char *sqlstate);

#endif
