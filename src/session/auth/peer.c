/* SPDX-License-Identifier: ISC */
/*
 * The kernel knows which system user is at the other end of a Unix socket; it must have the name
 * of the database user, or a map of the ident file must say that it may be that one.
 *
 * The name of a system user may come from a directory on the network, so it is asked for on a
 * helper thread. That is done for users that nobody knows too, so that time does not tell.
 */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "session/auth/client_login_state.h"
#include "session/auth/exchange.h"
#include "session/auth/method.h"
#include "session/link/peer_credentials.h"

enum {
	ENTRY_SIZE_FIRST = 1024, /* of a system user's entry */
	ENTRY_SIZE_MOST = 1024 * 1024,
};

struct question {
	struct helper_job job;
	struct registry *registry;
	uid_t uid;
	char *name; /* owned: the answer; NULL: there is no such user */
};

/* --- on the helper ------------------------------------------------------------------------ */

/* The user's name; NULL with ERANGE when its entry needs more room, or with another error. */
static char *name_in(uid_t uid, size_t size)
{
	char *entry = malloc(size), *name = NULL;
	struct passwd user, *found = NULL;
	int error = ENOMEM;

	if (entry)
		error = getpwuid_r(uid, &user, entry, size, &found);
	if (found)
		name = strdup(user.pw_name);
	free(entry);
	errno = error;
	return name;
}

static void ask(struct helper_job *job)
{
	struct question *question = (struct question *)job;
	size_t size = ENTRY_SIZE_FIRST;

	do {
		question->name = name_in(question->uid, size);
		size *= 2;
	} while (!question->name && errno == ERANGE && size <= ENTRY_SIZE_MOST);
}

/* --- on the loop -------------------------------------------------------------------------- */

static bool may_be(struct client_link *client, const char *system_user)
{
	const struct ident_map *map = &client->login->rule->map;
	const char *user = client->user->name;

	if (map->count == 0)
		return strcmp(system_user, user) == 0;
	if (ident_map_allows(map, system_user, user))
		return true;
	link_log_repeated(&client->link, LEVEL_LOG, "ident map %s cannot be matched",
		ident_map_name(map));
	return false;
}

static enum auth_result judge(struct client_link *client, const struct question *question)
{
	if (!question->name)
		link_log_repeated(&client->link, LEVEL_WARNING, "no system user has the uid %u",
			(unsigned)question->uid);
	else if (may_be(client, question->name) && exchange_is_known(client))
		return AUTH_PASSED;
	return exchange_refuse(client);
}

static void finish(struct helper_job *job)
{
	struct question *question = (struct question *)job;
	struct client_link *client =
		job->cancelled ? NULL : client_login_find(question->registry, job->link);

	if (client)
		client->login->steps->proceed(client, judge(client, question));
	free(question->name);
	free(question);
}

static bool submit(struct client_link *client, uid_t uid)
{
	struct registry *registry = link_registry(&client->link);
	struct question *question = calloc(1, sizeof(*question));

	if (!question)
		return false;
	question->job.work = ask;
	question->job.done = finish;
	question->job.link = client->link.id;
	question->registry = registry;
	question->uid = uid;
	if (helper_submit(registry->system_users, &question->job))
		return true;
	free(question);
	return false;
}

static enum auth_result begin(struct client_link *client)
{
	struct ucred peer;

	if (client->link.remote.family != AF_UNIX)
		return exchange_refuse(client);
	peer_credentials_read(client, &peer);
	if (submit(client, peer.uid))
		return AUTH_PENDING;
	link_log_repeated(&client->link, LEVEL_WARNING,
		"too many logins wait for the names of system users");
	return exchange_refuse(client);
}

const struct auth_method auth_peer = {
	.name = "peer",
	.counted = LOGIN_PEER,
	.refusal = REASON_UNIX_SOCKET_LOGIN_REJECTED,
	.begin = begin,
};
