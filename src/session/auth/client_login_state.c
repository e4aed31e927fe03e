/* SPDX-License-Identifier: ISC */
#include "session/auth/client_login_state.h"

#include <stdlib.h>
#include <string.h>

#include "session/link/login.h"
#include "wire/startup.h"

bool client_login_new(struct client_link *client, const struct startup_login *wanted,
	const struct login_steps *steps)
{
	struct login *login = calloc(1, sizeof(*login));

	if (!login)
		return false;
	client->login = login;
	login->client = client;
	login->steps = steps;
	login->version = startup_version_spoken(wanted->version);
	buffer_init_secret(&login->final);
	login->database_name = strdup(wanted->database);
	return login->database_name != NULL;
}

void client_login_stop_waiting(struct login *login)
{
	if (login->awaited)
		TAILQ_REMOVE(&login->awaited->waiting, login, in_awaited);
	login->awaited = NULL;
}

size_t client_login_key_length(const struct client_link *client)
{
	/* Peers may not support longer keys: PgBouncer refuses to forward them. */
	if (process_peer_id(link_registry(&client->link)->process) > 0)
		return CANCEL_KEY_MIN;
	return client->login->version > PROTOCOL_3_0 ? CANCEL_KEY_MAX : CANCEL_KEY_MIN;
}

bool client_login_send_sasl_final(struct client_link *client)
{
	struct buffer *sasl_final;
	size_t length;

	if (client->link.state > CLIENT_WELCOMING || !client->login)
		return true;
	sasl_final = &client->login->sasl_final;
	length = sasl_final->length;
	buffer_clear(sasl_final);
	return length == 0 ||
		stream_send_bytes(&client->link.stream, sasl_final->data, length) !=
		STREAM_SENT_NOT;
}
