/* SPDX-License-Identifier: ISC */
#include "daemon/privileges.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool privileges_knows_user(const char *user)
{
	return getpwnam(user) != NULL;
}

bool privileges_assume(const char *user, char *why, size_t size)
{
	const struct passwd *found = getpwnam(user);
	gid_t group;

	if (!found) {
		snprintf(why, size, "could not find user '%s' to switch to", user);
		return false;
	}
	group = found->pw_gid;
	if ((getuid() == 0 && setgroups(1, &group) != 0) || setgid(group) != 0 ||
		setuid(found->pw_uid) != 0) {
		snprintf(why, size, "failed to assume identity of user '%s': %s", user,
			strerror(errno));
		return false;
	}
	return true;
}
