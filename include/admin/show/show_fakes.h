/* SPDX-License-Identifier: ISC */
/*
 * Parameters that drivers SET or SHOW when they connect. They have a fixed value and no effect.
 */
#ifndef PGUSHER_ADMIN_SHOW_SHOW_FAKES_H
#define PGUSHER_ADMIN_SHOW_SHOW_FAKES_H

#include "admin/show/topic.h"

/* The topic of the parameter with this name, in any case; NULL: there is none. */
const struct topic *show_fakes_find(const char *name);

#endif
