/* SPDX-License-Identifier: ISC */
#include "session/lookup/login_end.h"

#include <stdlib.h>
#include <string.h>

#include "session/auth/client_login_state.h"
#include "session/auth/external_auth.h"
#include "session/auth/peer.h"
#include "session/auth/refusal.h"
#include "session/link/derivation.h"
#include "session/link/login.h"
#include "session/lookup/lookup_server.h"
#include "session/lookup/remote_question.h"

void login_end(struct client_link *client, enum client_state state)
{
	struct login *login = client->login;

	if (state > CLIENT_WELCOMING || !login)
		return;
	lookup_leave(&login->asker);
	remote_question_withdraw(login->remote);
	if (login->mock) {
		if (client->user == login->mock)
			client->user = NULL;
		free(login->mock);
	}
	wheel_remove(&link_registry(&client->link)->loop->wheel, &login->delayed);
	free(login->delayed_user);
	client_login_stop_waiting(login);
	peer_abandon(login->name_lookup);
	if (login->external_auth)
		external_auth_abandon(login->external_auth);
	derivation_abandon(login->derivation);
	refusal_cancel(login);
	credential_unref(login->credential);
	hba_unref(login->hba);
	scram_server_free(&login->scram);
	buffer_wipe(&login->final);
	buffer_free(&login->sasl_final);
	buffer_free(&login->option_names);
	free(login->database_name);
	explicit_bzero(login, sizeof(*login));
	free(login);
	client->login = NULL;
}
