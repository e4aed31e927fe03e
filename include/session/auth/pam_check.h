/* SPDX-License-Identifier: ISC */
/*
 * Checks a password with PAM. It blocks: for helper threads, several of them at once. The
 * library allows that, since each thread has its own handle.
 */
#ifndef PGUSHER_SESSION_AUTH_PAM_CHECK_H
#define PGUSHER_SESSION_AUTH_PAM_CHECK_H

#include "session/auth/external_auth.h"

/* The PAM service: its rules are in /etc/pam.d/pgbouncer, as for PgBouncer. */
#define PAM_CHECK_SERVICE "pgbouncer"

/*
 * Load the library. To be called before the first check. Returns false when that failed; `why`,
 * of `size` bytes, names what is missing then.
 */
bool pam_check_load(char *why, size_t size);

/*
 * Check the request's user and password; sets request->answer, request->why, request->expired
 * and request->delay.
 */
void pam_check(struct external_auth *request);

#endif
