/* SPDX-License-Identifier: ISC */
/*
 * The configuration that environment variables mean: those of the container images that this one
 * replaces, and PGUSHER_<SETTING>. The table of names is in environment_names.c.
 *
 * Reading collects what the variables say, one value for each thing, whichever variable has it.
 * Variables that say different things of the same thing are a mistake. Each variable may have its
 * value in a file, named by the variable with _FILE behind its name.
 *
 * The variable that names the server tells for which image the variables were written, and with
 * it the defaults: where the configuration file is, the port, how clients log in.
 */
#ifndef PGUSHER_SETUP_ENVIRONMENT_H
#define PGUSHER_SETUP_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "setup/draft.h"

struct environment;

/*
 * Read `variables`, texts `NAME=VALUE` ended by NULL, which are borrowed during the call only.
 * Returns NULL, with the reason in `why`, if there is a mistake; else the caller frees it.
 */
struct environment *environment_read(char *const *variables, char *why, size_t size);

/* Wipe and free; NULL is allowed. */
void environment_free(struct environment *environment);

/* Whether the variables name a server, so that a configuration can be made of them. */
bool environment_names_server(const struct environment *environment);

/* Number of variables that have a meaning here. */
size_t environment_count(const struct environment *environment);

/*
 * A place where the image would look for its configuration, by its index, in the order of looking;
 * NULL after the last. The first one that exists is to be used as it is. Static memory, or owned
 * by the environment.
 */
const char *environment_place(const struct environment *environment, size_t index);

/* Where a configuration made here, and its auth_file, belong. */
const char *environment_file(const struct environment *environment);
const char *environment_users_file(const struct environment *environment);

/* Further options of the command line, separated by blanks; NULL: none. */
const char *environment_flags(const struct environment *environment);

/*
 * Fill an empty draft, all but auth_file, unless a variable names that. Variables that are known
 * and have no effect are added to its findings. Returns false, with the reason in `why`.
 */
bool environment_fill(
	const struct environment *environment, struct draft *draft, char *why, size_t size);

#endif
