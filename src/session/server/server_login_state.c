/* SPDX-License-Identifier: ISC */
#include "session/server/server_login_state.h"

#include <stdlib.h>
#include <string.h>

#include "model/link_walk.h"
#include "session/link/derivation.h"
#include "session/relay/relay_rules.h"
#include "session/server/own_connection.h"

struct server_link *server_login_new(struct pool *pool, const struct server_login_owner *owner)
{
	struct registry *registry = pool->registry;
	struct server_link *server = slab_take(&registry->servers);
	struct server_login *login = calloc(1, sizeof(*login));

	if (!server || !login) {
		slab_give(&registry->servers, server);
		free(login);
		return NULL;
	}
	server->link.kind = LINK_SERVER;
	server->link.state = SERVER_CONNECTING;
	server->link.pool = pool;
	server->link.id = process_next_id(registry->process);
	link_walk_enroll(registry, &server->link);
	server->link.stream.loop = registry->loop;
	server->link.stream.fd = -1;
	server->link.parameters = parameters_empty(registry->parameters);
	server_set_task(server, SERVER_TASK_NONE);
	server->link.connect_time = server->link.request_time = loop_now(registry->loop);
	login->owner = owner;
	login->server = server;
	server->login = login;
	TAILQ_INSERT_HEAD(&pool->servers[SERVERS_LOGIN], &server->link, place);
	pool->server_count[SERVERS_LOGIN]++;
	cap_take_server(pool);
	counters_server_opened(pool->database);
	return server;
}

void server_login_reset(struct server_link *server)
{
	struct server_login *login = server->login;

	login->attempts++;
	own_connection_forget(server);
	derivation_abandon(login->derivation);
	login->derivation = NULL;
	scram_client_free(&login->scram);
	explicit_bzero(&login->scram, sizeof(login->scram));
	login->end_point_length = 0;
	login->scram_begun = login->scram_verified = login->authenticated = false;
	login->asks_role = false;
	login->tls_requested = login->tls_failed = login->wrong_secret = login->refused = false;
	buffer_clear(&login->untracked);
	login->reported = 0;
	server->role = HOST_ROLE_UNKNOWN;
	server->read_only = false;
	link_take_parameters(
		&server->link, parameters_empty(link_registry(&server->link)->parameters));
	server_drop_key(server);
	link_drop_held(&server->link);
}

void server_login_free(struct server_link *server)
{
	struct server_login *login = server->login;

	if (!login)
		return;
	own_connection_forget(server);
	server_route_end(&login->route);
	derivation_abandon(login->derivation);
	scram_client_free(&login->scram);
	buffer_free(&login->untracked);
	explicit_bzero(login, sizeof(*login));
	free(login);
	server->login = NULL;
}
