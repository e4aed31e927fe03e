/* SPDX-License-Identifier: ISC */
#include "session/lookup/login_asker.h"

#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/lookup/lookup_server.h"

static void moved(struct asker *asker)
{
	client_limits_start(login_of(asker)->client);
}

static void failed(struct asker *asker, const struct failure *why)
{
	client_close(login_of(asker)->client, why);
}

static void refuse_unknown(struct client_link *client, const char *user)
{
	if (link_registry(&client->link)->process->settings->log_connections)
		link_log_repeated(&client->link, LEVEL_LOG, "login failed: db=%s user=%s",
			client->database->name, user);
	client_close_for(client, REASON_NO_SUCH_USER);
}

static void found(struct asker *asker, const char *name, struct credential *credential)
{
	const struct login *login = login_of(asker);

	if (credential)
		login->steps->found(login->client, name, credential);
	else
		refuse_unknown(login->client, name);
}

static const struct asker_events events = {
	.moved = moved,
	.failed = failed,
	.found = found,
};

void login_asker_wait(struct client_link *client)
{
	struct asker *asker = &client->login->asker;

	asker->events = &events;
	asker->since = client->link.request_time;
	asker->link = &client->link;
	client_enter(client, CLIENT_LOOKING_UP);
	stream_pause(&client->link.stream);
	client_limits_start(client);
}

void login_asker_begin(
	struct client_link *client, struct pool *pool, const struct lookup_question *question)
{
	struct failure why;

	if (lookup_ask(&client->login->asker, pool, question, client->replica, &why))
		login_asker_wait(client);
	else
		client_close(client, &why);
}
