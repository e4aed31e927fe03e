/* SPDX-License-Identifier: ISC */
/*
 * How PostgreSQL changes an application_name: it accepts any bytes, whatever the encoding, and
 * replaces those that are not printable ASCII.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_APPLICATION_NAME_H
#define PGUSHER_SESSION_PARAMETERS_APPLICATION_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum {
	/* Maximum number of bytes that a server keeps of a name. */
	APPLICATION_NAME_MAX = 63,
	APPLICATION_NAME_CLEAN_SIZE = APPLICATION_NAME_MAX + 1,
};

/* Returns whether a server keeps the name unchanged: printable ASCII, and not too long. */
bool application_name_is_clean(const char *name);

/*
 * Write the name as a server has it with this server_version (NULL: unknown) and this
 * server_encoding: `?` for each byte that is not printable ASCII; from version 16 on `\x` and
 * its number, as far as whole ones fit.
 */
void application_name_clean(const char *name, const char *version, const char *encoding,
	char out[APPLICATION_NAME_CLEAN_SIZE]);

#endif
