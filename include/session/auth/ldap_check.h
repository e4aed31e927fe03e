/* SPDX-License-Identifier: ISC */
/* A password judged by an LDAP server. It blocks: for helper threads, several of them at once. */
#ifndef PGUSHER_SESSION_AUTH_LDAP_CHECK_H
#define PGUSHER_SESSION_AUTH_LDAP_CHECK_H

#include "session/auth/external_auth.h"

/* Was it built in? */
extern const bool ldap_check_is_built_in;

/* Load the library, before the first check. False: `why` says what is missing. */
bool ldap_check_load(char *why, size_t size);

/* Find out what request->answer and ->why should be, from what is asked. */
void ldap_check(struct external_auth *request);

#endif
