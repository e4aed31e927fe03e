/* SPDX-License-Identifier: ISC */
#include "session/login/admission.h"

#include "base/text.h"
#include "session/auth/client_login_state.h"
#include "session/link/close.h"
#include "session/link/login_counts.h"
#include "session/login/client_identity.h"
#include "session/lookup/login_end.h"
#include "session/serving/client_session.h"
#include "session/serving/welcome.h"

static void log_failed(const struct client_link *client)
{
	if (link_registry(&client->link)->process->settings->log_connections)
		link_log_repeated(&client->link, LEVEL_LOG, "login failed: db=%s user=%s",
			client->login->database_name, client->user->name);
}

/*
 * Count the login in the totals of the client's pool, once: admission begins again after its
 * startup parameters were checked.
 */
static void count_login(const struct client_link *client)
{
	if (!client->login->counted)
		client->link.pool->stats.current.client_logins++;
	client->login->counted = true;
}

void admission_to_console(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	if (!cancel_keys_issue(&registry->process->cancel_keys, client,
		    client_login_key_length(client), &registry->loop->random)) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	if (!client_login_send_sasl_final(client)) {
		client_close_for(client, REASON_UNEXPECTED_EOF);
		return;
	}
	client->link.pool = registry->console_pool;
	count_login(client);
	login_counts_passed(client);
	login_end(client, CLIENT_AUTHENTICATING);
	stream_set_handlers(&client->link.stream, &client_console_handlers);
	client_enter(client, CLIENT_CONSOLE);
	deadline_cancel(&client->deadline);
	registry->process->console.begin(client);
}

void admission_begin(struct client_link *client)
{
	struct registry *registry = link_registry(&client->link);
	struct failure why;
	struct user *user;
	char name[64];

	if (client_identity_is_console(client)) {
		admission_to_console(client);
		return;
	}
	if (!client_identity_open_database(client)) {
		if (client->link.state == CLIENT_CLOSED)
			return;
		log_failed(client);
		text_copy(name, sizeof(name), client->login->database_name);
		why = failure_of(REASON_NO_SUCH_DATABASE, name);
		client_close(client, &why);
		return;
	}
	if (client->database->disabled) {
		why = failure_of(REASON_DATABASE_DISABLED, client->database->name);
		client_close(client, &why);
		return;
	}
	if (!process_accepts_logins(registry->process)) {
		client_close_for(client, REASON_POOLER_SHUTTING_DOWN);
		return;
	}
	user = registry_server_user(registry, client->database, client->user);
	client->link.pool = user ? registry_open_pool(registry, client->database, user,
					   client->login->asked_role)
				 : NULL;
	if (!client->link.pool) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	/*
	 * A forced user has its own secret, from the configuration: the client's is not used.
	 */
	if (!client->database->config->user)
		pool_set_credential(client->link.pool, client->login->credential);
	count_login(client);
	welcome_or_wait(client);
}
