/* SPDX-License-Identifier: ISC */
/*
 * What PostgreSQL makes of an application_name: it takes any bytes, whatever the encoding, and
 * has something printable in place of those that are not.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_APPLICATION_NAME_H
#define PGUSHER_SESSION_PARAMETERS_APPLICATION_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum {
	/* Bytes that a server keeps of a name. */
	APPLICATION_NAME_MAX = 63,
	APPLICATION_NAME_CLEAN_SIZE = APPLICATION_NAME_MAX + 1,
};

/* Is it printable ASCII, and no longer than a server keeps? */
bool application_name_is_clean(const char *name);

/*
 * Another one, as a server of this version (server_version; NULL: unknown) has it whose
 * server_encoding is this: `?` for each byte that is not printable ASCII, from 16 on its number, as
 * far as such numbers fit in whole.
 */
void application_name_clean(const char *name, const char *version, const char *encoding,
	char out[APPLICATION_NAME_CLEAN_SIZE]);

#endif
