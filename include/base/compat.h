/* SPDX-License-Identifier: ISC */
/*
 * The version of PgBouncer that this program has the interface of: settings, console, log lines,
 * texts.
 */
#ifndef PGUSHER_BASE_COMPAT_H
#define PGUSHER_BASE_COMPAT_H

#define COMPAT_VERSION "1.25.2"

#endif
