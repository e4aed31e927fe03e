/* SPDX-License-Identifier: ISC */
/*
 * Parses a connection URL, postgresql://user:password@host:port,host2/dbname?key=value, into the
 * keys of a connection string. Source: PostgreSQL, libpq, "Connection URIs".
 *
 * Each part may have percent codes; a host that is one of an absolute path is the folder of a
 * Unix socket. Bytes that would make a URL mean something else to another reader, such as an @
 * in a password, are refused with the code that has to be written.
 */
#ifndef PGUSHER_SETUP_URL_H
#define PGUSHER_SETUP_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "setup/pairs.h"

/* Whether the text begins as such a URL does. */
bool url_is_one(const char *text);

/*
 * Add the parts of the URL to `out`, those that it has, in this order: user, password, host,
 * port, dbname, and the parameters. Several hosts are a list with commas, as are their ports.
 * Returns false, with the reason in `why`, which never shows a password; `out` may have some of
 * the parts then, and is freed by the caller.
 */
bool url_parse(const char *url, struct pairs *out, char *why, size_t size);

#endif
