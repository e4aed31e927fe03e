/* SPDX-License-Identifier: ISC */
/*
 * A password judged by PAM. It blocks: for helper threads, several of them at once, as the library
 * allows for handles of their own.
 */
#ifndef PGUSHER_SESSION_AUTH_PAM_CHECK_H
#define PGUSHER_SESSION_AUTH_PAM_CHECK_H

#include "session/auth/external_auth.h"

/* The service whose rules apply: /etc/pam.d/pgbouncer, as with PgBouncer. */
#define PAM_CHECK_SERVICE "pgbouncer"

/* Load the library, before the first check. False: `why` says what is missing. */
bool pam_check_load(char *why, size_t size);

/* Find out what request->answer, ->why and ->delay should be, from what is asked. */
void pam_check(struct external_auth *request);

#endif
