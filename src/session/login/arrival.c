/* SPDX-License-Identifier: ISC */
#include "session/login/arrival.h"

#include "model/link_walk.h"
#include "session/link/client_limits.h"

void arrival_enter(struct registry *registry, struct client_link *client, uint64_t id,
	const struct address *remote, usec_t connect_time)
{
	struct link *link = &client->link;

	link->kind = LINK_CLIENT;
	link->state = CLIENT_GREETING;
	link->id = id;
	link->remote = *remote;
	link->connect_time = link->request_time = connect_time;
	link->parameters = parameters_empty(registry->parameters);
	client->deadline.expire = client_limits_expire;
	link_walk_enroll(registry, link);
	TAILQ_INSERT_TAIL(&registry->logins, link, place);
	registry->login_count++;
}
