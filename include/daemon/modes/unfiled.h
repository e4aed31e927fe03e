/* SPDX-License-Identifier: ISC */
/*
 * --listen and --to: a pooler without a file. The configuration that the options mean is printed as
 * a file would have it, with passwords masked, and kept in memory, where RELOAD finds it again.
 */
#ifndef PGUSHER_DAEMON_MODES_UNFILED_H
#define PGUSHER_DAEMON_MODES_UNFILED_H

#include <stdbool.h>

#include "daemon/options.h"
#include "setup/arguments.h"

/* What the options say, with user and password from libpq's variables. Texts are borrowed. */
struct arguments unfiled_arguments(const struct options *options);

/*
 * Set options->config to the configuration in memory. Returns false, with the reason on stderr. A
 * --user is assumed before, since the memory belongs to that user.
 */
bool unfiled_prepare(struct options *options);

#endif
