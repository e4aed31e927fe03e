/* SPDX-License-Identifier: ISC */
/*
 * Advice: what is wrong at the moment, in sentences with figures, and the setting to change.
 *
 * The advisor (admin/advice/advisor) looks once a second and keeps at most ADVICE_MOST pieces of advice,
 * each of which has held for some time. They belong to it and are valid until the next turn of the loop.
 * SHOW ADVICE, the metrics and the page read them here. doc/advice.md has a section for each code.
 */
#ifndef PGUSHER_ADMIN_ADVICE_ADVICE_H
#define PGUSHER_ADMIN_ADVICE_ADVICE_H

#include <stdbool.h>

#include "base/buffer.h"
#include "model/registry.h"

enum { ADVICE_MOST = 32 };

enum advice_severity { ADVICE_INFO, ADVICE_WARNING, ADVICE_CRITICAL, ADVICE_SEVERITIES };

/* One piece of advice. Its fields are the advisor's: read it by the functions below. */
struct advice;

/*
 * Returns the advice of that number, from 0, which is the most severe; NULL: there are no more.
 */
const struct advice *advice_nth(const struct registry *registry, unsigned number);

/* The word of the code, such as "pool_full": the anchor of its section in doc/advice.md. */
const char *advice_code(const struct advice *advice);

enum advice_severity advice_severity(const struct advice *advice);

/* "info", "warning", "critical". */
const char *advice_severity_name(enum advice_severity severity);

/* The setting to change; NULL: none, because the application or the server is to be changed. */
const char *advice_setting(const struct advice *advice);

/*
 * What the advice is about. NULL or 0: not about one pool, database or user. Advice about a pool has all of
 * them. The pool may have been dropped since: advice_pool(), which walks over the pools, is NULL then. The
 * names are as clients send them, with any bytes but NUL; very long ones are cut.
 */
struct pool *advice_pool(const struct registry *registry, const struct advice *advice);
uint64_t advice_pool_number(const struct advice *advice);
const char *advice_database(const struct registry *registry, const struct advice *advice);
const char *advice_user(const struct registry *registry, const struct advice *advice);

/* Returns for how long it holds, in microseconds; `now` is the loop's time. */
usec_t advice_age(const struct advice *advice, usec_t now);

/*
 * Append the sentence, without a NUL. It is printable UTF-8: bytes of peers that are not are written
 * as \xNN. It has no names of databases and users; `with_names` decides whether it has those of
 * applications, hosts and files, and addresses.
 */
void advice_write(const struct advice *advice, bool with_names, struct buffer *out);

#endif
