/* SPDX-License-Identifier: ISC */
/*
 * The configuration that --listen and --to mean: a pooler without a file, for one server.
 *
 * It is safe by default. It listens on the loopback address unless told otherwise. If the server
 * user has a password, clients log in as that user with that password. If it has none, clients need
 * none either, and then only local addresses and Unix sockets may be listened on.
 */
#ifndef PGUSHER_SETUP_ARGUMENTS_H
#define PGUSHER_SETUP_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "setup/draft.h"

/* The values of the options; texts are borrowed. */
struct arguments {
	const char *const *listen; /* ended by NULL: PORT, ADDRESS, ADDRESS:PORT, FOLDER */
	const char *to; /* a connection string or URL; NULL: none, as for --health */
	const char *const *presets; /* ended by NULL: `NAME=VALUE`, over what would be chosen */
	const char *user; /* server user if `to` has none; NULL: `to` must have one */
	const char *password; /* its password if `to` has none; NULL: it has none */
};

/*
 * Fill an empty draft. Its users are those of an auth_file, which is still to be set. Returns
 * false, with the reason in `why`.
 */
bool arguments_fill(
	struct draft *draft, const struct arguments *arguments, char *why, size_t size);

#endif
