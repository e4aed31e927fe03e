/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_client.h"

#include "support/simulation/sim_oracle.h"
#include "support/simulation/sim_random.h"
#include "support/simulation/sim_requests.h"
#include "support/simulation/sim_trace.h"
#include "wire/startup.h"
#include "wire/writer.h"

const char *const sim_database_names[SIM_DATABASES_MOST] = {
	"db", "other", "third", "fourth", "fifth"};
unsigned sim_databases = 2;
const char *const sim_users[SIM_USERS] = {"alice", "bob"};

void sim_client_begin(struct sim_client *client, unsigned number, const char *user)
{
	char name[32];
	size_t mark;

	*client = (struct sim_client){.number = number, .status = 'I'};
	fake_process.dealt = sim_below(fake_process.workers);
	client->endpoint = fake_accept(-1);
	mark = startup_begin(&client->out, PROTOCOL_3_0);
	writer_string(&client->out, "user");
	writer_string(&client->out, user);
	writer_string(&client->out, "database");
	client->database = sim_chance(30) ? 1 + sim_below(sim_databases - 1) : 0;
	writer_string(&client->out, sim_database_names[client->database]);
	if (sim_chance(50)) {
		snprintf(name, sizeof(name), "c%u.start", number);
		writer_string(&client->out, "application_name");
		writer_string(&client->out, name);
	}
	startup_end(&client->out, mark);
	sim_trace("client", number, "connects", 0, user);
}

/* What may be sent depends on answers that have not arrived. */
static bool has_to_wait(const struct sim_client *client)
{
	return !client->endpoint || !client->logged_in || client->disconnects ||
		client->server_ended || client->awaits_copy || client->resets;
}

bool sim_client_send(struct sim_client *client, const struct sim_profile *profile)
{
	if (has_to_wait(client) || client->out.length - client->delivered > 4096)
		return false;
	if (client->copies) {
		sim_requests_copy(client, sim_chance(25));
		return true;
	}
	if (client->owed >= profile->pipeline)
		return false;
	if (!client->batch && sim_chance(1)) {
		sim_trace("client", client->number, "sends Terminate", client->owed, NULL);
		sim_requests_terminate(client);
	} else if (client->batch && sim_chance(50)) {
		sim_requests_sync(client);
	} else {
		sim_requests_draw(client, profile);
	}
	return true;
}

bool sim_client_finish_transaction(struct sim_client *client)
{
	if (has_to_wait(client))
		return false;
	if (client->copies) {
		sim_requests_copy(client, true);
		return true;
	}
	if (client->batch) {
		sim_requests_sync(client);
		return true;
	}
	if (client->owed > 0)
		return false;
	if (client->status != 'I')
		sim_requests_query(client, "rollback");
	else if (client->oracle.settings.now.table)
		sim_requests_query(client, "drop table");
	else if (client->oracle.settings.now.cursor)
		sim_requests_query(client, "close c");
	else if (client->oracle.settings.lock)
		sim_requests_query(client, "select pg_advisory_unlock()");
	else
		return false;
	return true;
}

bool sim_client_finish_listening(struct sim_client *client)
{
	if (sim_client_finish_transaction(client))
		return true;
	if (has_to_wait(client) || client->owed > 0 || client->unlistened ||
		(client->possible == 0 && !client->is_vague))
		return false;
	client->unlistened = true;
	sim_requests_query(client, "unlisten *");
	return true;
}

bool sim_client_finish(struct sim_client *client)
{
	if (sim_client_finish_listening(client))
		return true;
	if (has_to_wait(client) || client->owed > 0)
		return false;
	sim_trace("client", client->number, "sends Terminate", client->owed, NULL);
	sim_requests_terminate(client);
	return true;
}

bool sim_client_deliver(struct sim_client *client, size_t most)
{
	const size_t left = client->out.length - client->delivered;
	const size_t length = left < most ? left : most;

	if (!client->endpoint || length == 0)
		return false;
	sim_trace("client", client->number, "delivers", (long)length, NULL);
	scripted_feed(client->endpoint->script, client->out.data + client->delivered, length);
	client->delivered += length;
	if (client->delivered == client->out.length) {
		buffer_clear(&client->out);
		client->delivered = 0;
		if (client->disconnects)
			client->close_causes |= SIM_CLIENT_DISCONNECTED;
	}
	scripted_run(client->endpoint->script);
	return true;
}

void sim_client_check(struct sim_client *client)
{
	size_t length;
	const uint8_t *output = scripted_output(client->endpoint->script, &length);

	if (client->read_offset == length)
		return;
	while (client->read_offset < length) {
		const size_t used = sim_oracle_check(
			client, output + client->read_offset, length - client->read_offset);

		if (used == 0)
			return;
		client->read_offset += used;
	}
	scripted_forget_output(client->endpoint->script);
	client->read_offset = 0;
}

void sim_client_end(struct sim_client *client)
{
	size_t length;
	const uint8_t *output;

	sim_trace("client", client->number, "is closed", (long)client->close_causes,
		client->fatal);
	sim_client_check(client);
	output = scripted_output(client->endpoint->script, &length);
	if (client->read_offset < length)
		sim_oracle_check_tail(
			client, output + client->read_offset, length - client->read_offset);
	sim_oracle_check_close(client);
	fake_forget(client->endpoint);
	sim_client_free(client);
}

void sim_client_free(struct sim_client *client)
{
	client->endpoint = NULL;
	buffer_free(&client->out);
	buffer_free(&client->requests);
	sim_postgres_free(&client->oracle);
}
