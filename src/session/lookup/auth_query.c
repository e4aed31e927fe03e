/* SPDX-License-Identifier: ISC */
#include "session/lookup/auth_query.h"

#include "session/link/close.h"
#include "session/link/login.h"
#include "session/lookup/login_asker.h"
#include "session/lookup/remote_question.h"
#include "session/lookup/user_question.h"

static const char *first_of(const char *own, const char *global)
{
	const char *chosen = own ? own : global;

	return chosen && chosen[0] != '\0' ? chosen : NULL;
}

const char *auth_query_user(
	const struct registry *registry, const struct database_config *entry)
{
	return first_of(entry->auth_user, registry->process->settings->auth_user);
}

static void ask_here(struct client_link *client, const struct user_question *question)
{
	struct registry *registry = link_registry(&client->link);
	struct user_question_refusal refusal;

	if (user_question_ask(&client->login->asker, registry, question, &refusal)) {
		login_asker_wait(client);
		return;
	}
	user_question_log(client, question->where, refusal.problem);
	client_close(client, &refusal.why);
}

/* The database to ask in is at home at another worker: its answer comes by mail. */
static void ask_there(
	struct client_link *client, struct registry *home, struct user_question *question)
{
	const char *own = client->database->config->auth_query;

	question->query =
		own ? own : link_registry(&client->link)->process->settings->auth_query;
	remote_question_begin(client, home, question);
}

void auth_query_begin(struct client_link *client, const char *user)
{
	struct registry *registry = link_registry(&client->link);
	struct process *process = registry->process;
	const struct database_config *entry = client->database->config;
	struct registry *home = NULL;
	struct user_question question = {
		.where = first_of(entry->auth_dbname, process->settings->auth_dbname),
		.database = client->database,
		.auth_user = auth_query_user(registry, entry),
		.user = user,
		.replica = client->replica,
		.link = &client->link,
	};

	if (process->workers > 1 && question.where)
		home = directory_home_of(process, question.where);
	if (home && home != registry)
		ask_there(client, home, &question);
	else
		ask_here(client, &question);
}
