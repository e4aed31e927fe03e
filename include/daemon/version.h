/* SPDX-License-Identifier: ISC */
/*
 * The version of this program and of its libraries, for --version, SHOW VERSION and the log.
 * The text starts with PgBouncer's version, because tools use its first number to identify the
 * interface.
 */
#ifndef PGUSHER_DAEMON_VERSION_H
#define PGUSHER_DAEMON_VERSION_H

#include "base/compat.h"

/* Returns `PgBouncer X.Y.Z (pgusher X.Y.Z)` for this version of PgBouncer. Static. */
const char *version_text(enum compat_version version);

/* The library that looks up host names: `c-ares N`. Static, overwritten by the next call. */
const char *version_of_adns(void);

/* The library of TLS and cryptography. Static. */
const char *version_of_tls(void);

/* Print the text of --version to stdout. */
void version_print(enum compat_version version);

#endif
