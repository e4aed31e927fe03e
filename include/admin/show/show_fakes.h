/* SPDX-License-Identifier: ISC */
/*
 * Parameters of PostgreSQL sessions that the console has in name only: drivers and tools ask for
 * them and set them when they connect. Their values do not change, and are in letter case and type as
 * PostgreSQL would show them.
 */
#ifndef PGUSHER_ADMIN_SHOW_SHOW_FAKES_H
#define PGUSHER_ADMIN_SHOW_SHOW_FAKES_H

#include "admin/show/topic.h"

/* The parameter of that name, in any case, as a topic of SHOW; NULL: there is none. */
const struct topic *show_fakes_find(const char *name);

/*
 * The value of a parameter that show_fakes_find() has returned; server_version is that of this
 * version of PgBouncer. Static.
 */
const char *show_fakes_value(const struct topic *fake, enum compat_version version);

/* Does PostgreSQL refuse SET of this parameter, which show_fakes_find() has returned? */
bool show_fakes_is_fixed(const struct topic *fake);

#endif
