/* SPDX-License-Identifier: ISC */
/* In place of pam_check.c in builds without libpam, where no configuration can use PAM. */
#include <stdio.h>

#include "session/auth/pam_check.h"

bool pam_check_load(char *why, size_t size)
{
	(void)why;
	(void)size;
	return true;
}

void pam_check(struct external_auth *request)
{
	request->answer = EXTERNAL_AUTH_FAILED;
	snprintf(request->why, sizeof(request->why), "not built in");
}
