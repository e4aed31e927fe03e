/* SPDX-License-Identifier: ISC */
/*
 * The kernel reports the system user at the other end of a Unix socket. Its name must be the
 * name of the database user, or an ident map must allow it to be that user.
 *
 * The name of a system user may come from a directory on the network, so it is looked up on a
 * helper thread. This is also done for unknown database users, so that the time of the refusal
 * does not show which users exist.
 */
#include "session/auth/peer.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "session/auth/exchange.h"
#include "session/auth/method.h"
#include "session/link/peer_credentials.h"

enum {
	ENTRY_SIZE_FIRST = 1024, /* of a system user's entry */
	ENTRY_SIZE_MOST = 1024 * 1024,
};

struct name_lookup {
	struct helper_job job;
	struct client_link *client; /* that logs in; NULL: its login has ended */
	uid_t uid;
	char *name; /* owned: the result; NULL: there is no such user */
};

/* --- on the helper ------------------------------------------------------------------------ */

/*
 * Return the user's name, for the caller to free, read with a buffer of this size. Returns NULL
 * and sets errno when there is none; ERANGE means that its entry needs a larger buffer.
 */
static char *read_name(uid_t uid, size_t size)
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

static void look_up(struct helper_job *job)
{
	struct name_lookup *lookup = (struct name_lookup *)job;
	size_t size = ENTRY_SIZE_FIRST;

	do {
		lookup->name = read_name(lookup->uid, size);
		size *= 2;
	} while (!lookup->name && errno == ERANGE && size <= ENTRY_SIZE_MOST);
}

/* --- on the loop -------------------------------------------------------------------------- */

static bool is_allowed(struct client_link *client, const char *system_user)
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

static enum auth_result decide(struct client_link *client, const struct name_lookup *lookup)
{
	if (!lookup->name)
		link_log_repeated(&client->link, LEVEL_WARNING, "no system user has the uid %u",
			(unsigned)lookup->uid);
	else if (is_allowed(client, lookup->name) && exchange_is_known(client))
		return AUTH_PASSED;
	return exchange_refuse(client);
}

static void finish(struct helper_job *job)
{
	struct name_lookup *lookup = (struct name_lookup *)job;
	struct client_link *client = job->cancelled ? NULL : lookup->client;

	if (client) {
		client->login->name_lookup = NULL;
		client->login->steps->proceed(client, decide(client, lookup));
	}
	free(lookup->name);
	free(lookup);
}

static bool submit(struct client_link *client, uid_t uid)
{
	struct registry *registry = link_registry(&client->link);
	struct name_lookup *lookup = calloc(1, sizeof(*lookup));

	if (!lookup)
		return false;
	lookup->job.work = look_up;
	lookup->job.done = finish;
	lookup->client = client;
	lookup->uid = uid;
	if (helper_submit(registry->system_users, &lookup->job)) {
		client->login->name_lookup = lookup;
		return true;
	}
	free(lookup);
	return false;
}

void peer_abandon(struct name_lookup *lookup)
{
	if (lookup)
		lookup->client = NULL;
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
