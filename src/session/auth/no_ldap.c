/* SPDX-License-Identifier: ISC */
/* In place of ldap_check.c in builds without libldap. */
#include <stdio.h>

#include "session/auth/ldap_check.h"

const bool ldap_check_is_built_in = false;

/* Succeeds: each login by LDAP is refused with a reason of its own. */
bool ldap_check_load(char *why, size_t size)
{
	(void)why;
	(void)size;
	return true;
}

void ldap_check(struct external_auth *request)
{
	request->answer = EXTERNAL_AUTH_FAILED;
	snprintf(request->why, sizeof(request->why), "not built in");
}
