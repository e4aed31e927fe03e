/* SPDX-License-Identifier: ISC */
/*
 * The table of SHOW topics, made from admin/show/topics.def. A topic is one row there and one
 * variable in a file show_*.c.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_TOPICS_H
#define PGUSHER_ADMIN_CONSOLE_TOPICS_H

#include "admin/show/topic.h"

/*
 * The topic of that name, in any case, as this version of PgBouncer has it; parameters of
 * drivers included; NULL: there is none.
 */
const struct topic *topics_find(const char *name, enum compat_version version);

/*
 * Append the lines of SHOW HELP that name the topics, each preceded by a newline and a tab:
 * those that PgBouncer has (`ours` is false), or those that only pgusher has.
 */
void topics_help(struct buffer *out, bool ours);

/* The topic at this place of the table and its purpose. Returns false behind the last one. */
bool topics_get(unsigned place, const struct topic **topic, const char **purpose);

#endif
