/* SPDX-License-Identifier: ISC */
/*
 * Checks a password at an LDAP server. It blocks: for helper threads, several of them at once.
 */
#ifndef PGUSHER_SESSION_AUTH_LDAP_CHECK_H
#define PGUSHER_SESSION_AUTH_LDAP_CHECK_H

#include "session/auth/external_auth.h"

/* Was pgusher built with LDAP? */
extern const bool ldap_check_is_built_in;

/*
 * Load the library. To be called before the first check. Returns false when that failed; `why`,
 * of `size` bytes, names what is missing then.
 */
bool ldap_check_load(char *why, size_t size);

/* Check the request's user and password; sets request->answer and request->why. */
void ldap_check(struct external_auth *request);

#endif
