/* SPDX-License-Identifier: ISC */
/*
 * Who we are, for --version, SHOW VERSION and the log: PgBouncer's version first, because tools
 * pick the first number out of it and mean the interface by it.
 */
#ifndef PGUSHER_DAEMON_VERSION_H
#define PGUSHER_DAEMON_VERSION_H

/* `PgBouncer 1.25.2 (pgusher X.Y.Z)`. */
extern const char version_text[];

/* The library that looks up host names: `c-ares N`. */
const char *version_of_adns(void);

/* The library that has the cryptography. */
const char *version_of_tls(void);

/* What --version shows, to stdout. */
void version_print(void);

#endif
