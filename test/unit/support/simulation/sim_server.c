/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_server.h"

#include <errno.h>

#include "support/simulation/sim_hosts.h"
#include "support/simulation/sim_notes.h"
#include "support/simulation/sim_random.h"
#include "support/simulation/sim_tokens.h"
#include "support/simulation/sim_trace.h"
#include "support/simulation/sim_world.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/startup.h"
#include "wire/writer.h"

struct sim_server sim_servers[SIM_SERVERS];
bool sim_server_one_owner;
unsigned sim_server_count;

static bool is_frozen(const struct sim_server *server)
{
	return server->session.host && server->session.host->state == SIM_HOST_HANGS;
}

static void take_over(struct endpoint *endpoint)
{
	struct sim_server *server = sim_servers;

	while (server->endpoint && server < sim_servers + SIM_SERVERS - 1)
		server++;
	assert_null(server->endpoint);
	*server = (struct sim_server){
		.endpoint = endpoint,
		.connecting = true,
		.number = ++sim_server_count,
		.session.host = sim_hosts_at(&endpoint->where),
	};
	for (size_t i = 0; i < sizeof(server->key); i++)
		server->key[i] = (uint8_t)sim_draw();
	sim_trace("server", server->number, "is connected to", 0, NULL);
}

void sim_server_collect(void)
{
	struct endpoint *endpoint;

	while ((endpoint = fake_launched()) != NULL)
		take_over(endpoint);
}

void sim_server_notify(const struct sim_postgres *from, const struct sim_notice *notice)
{
	const unsigned bit = sim_notes_bit(notice->name, strlen(notice->name));

	for (unsigned i = 0; i < SIM_SERVERS; i++) {
		struct sim_postgres *pg = &sim_servers[i].session;

		if (sim_servers[i].endpoint && sim_servers[i].started &&
			!sim_servers[i].has_ended && pg->database == from->database &&
			(pg->settings.before.channels & bit))
			sim_postgres_hear(pg, notice, from->pid);
	}
}

/* --- login, and cancel requests ----------------------------------------------------------- */

static unsigned number_of(const char *database)
{
	unsigned number = 0;

	while (number < sim_databases && strcmp(sim_database_names[number], database) != 0)
		number++;
	assert_true(number < sim_databases);
	return number;
}

static void answer_startup(struct sim_server *server, const uint8_t *message, size_t total)
{
	struct buffer *out = &server->session.out;
	struct startup_walk walk;
	const char *name, *value, *application_name = "";
	unsigned database = 0;

	startup_walk_begin(&walk, message, total);
	while (startup_walk_next(&walk, &name, &value) == STARTUP_PARAMETER) {
		if (strcmp(name, "application_name") == 0)
			application_name = value;
		else if (strcmp(name, "database") == 0)
			database = number_of(value);
	}
	sim_postgres_start(&server->session, true, application_name);
	server->session.host = sim_hosts_at(&server->endpoint->where);
	server->session.database = database;
	server->session.at_rest = true;
	server->session.pid = (uint32_t)server->key[0] << 24 | (uint32_t)server->key[1] << 16 |
		(uint32_t)server->key[2] << 8 | server->key[3];
	server->session.one_owner = sim_server_one_owner;
	writer_authentication(out, AUTH_OK, NULL, 0);
	writer_parameter_status(out, "application_name", application_name);
	writer_parameter_status(out, "client_encoding", "UTF8");
	writer_parameter_status(out, "server_version", "15.0");
	sim_host_welcome(&server->session);
	writer_backend_key(out, server->key, sizeof(server->key));
	writer_ready(out, READY_IDLE);
	server->started = true;
}

/* The host is starting up, or shutting down. */
static void refuse_startup(struct sim_server *server)
{
	struct buffer error = {0};

	sim_trace("server", server->number, "refuses the startup", 0, NULL);
	writer_error(&error, "FATAL", "57P03", "the database system is starting up");
	scripted_feed(server->endpoint->script, error.data, error.length);
	buffer_free(&error);
	scripted_end(server->endpoint->script);
	server->has_ended = true;
	scripted_run(server->endpoint->script);
}

/*
 * The request may arrive after its query has ended, and interrupt the next one: that must
 * belong to the same client.
 */
static void interrupt(struct sim_server *target)
{
	const unsigned owner = sim_token(target->session.running)->owner;

	sim_trace("server", target->number, "is cancelled, at the work of", owner, NULL);
	if (!sim_world_is_cancelled(owner))
		fail_msg("a query of client %u was cancelled, without a request", owner);
	target->session.interrupted = true;
}

/* Is the next message the pooler's SETs? */
static bool is_next_sets(const struct sim_server *server)
{
	size_t length;
	const uint8_t *output = scripted_output(server->endpoint->script, &length);
	const size_t size = strlen(SIM_SETS);

	output += server->read_offset;
	length -= server->read_offset;
	return server->started && length > FRAME_HEADER_SIZE + size && output[0] == PQ_QUERY &&
		memcmp(output + FRAME_HEADER_SIZE, SIM_SETS, size) == 0;
}

static void on_cancel(struct sim_server *server, const uint8_t *key, size_t length)
{
	assert_int_equal(length, sizeof(server->key));
	for (unsigned i = 0; i < SIM_SERVERS; i++) {
		struct sim_server *target = &sim_servers[i];

		if (!target->endpoint || memcmp(target->key, key, length) != 0)
			continue;
		sim_world_check_cancel(endpoint_link(target->endpoint));
		if (target->session.stuck)
			interrupt(target);
		else if (is_next_sets(target))
			target->session.set_failure = SIM_SETS_CANCELED;
	}
	scripted_end(server->endpoint->script);
	server->has_ended = true;
	scripted_run(server->endpoint->script);
}

/* --- work --------------------------------------------------------------------------------- */

/* Handles the first message, which has no type byte. Returns its size. */
static size_t begin(struct sim_server *server, const uint8_t *data, size_t available)
{
	size_t total = 0, length;
	const uint8_t *key;

	switch (startup_peek(data, available, &total)) {
	case STARTUP_INCOMPLETE:
		return 0;
	case STARTUP_LOGIN:
		if (server->session.host && server->session.host->state == SIM_HOST_STARTS) {
			refuse_startup(server);
			return total;
		}
		sim_trace("server", server->number, "answers the startup", 0, NULL);
		answer_startup(server, data, total);
		return total;
	case STARTUP_CANCEL:
		sim_trace("server", server->number, "receives a cancel request", 0, NULL);
		key = startup_cancel_key(data, total, &length);
		on_cancel(server, key, length);
		return total;
	case STARTUP_SSL_REQUEST:
		scripted_feed(server->endpoint->script, "N", 1);
		scripted_run(server->endpoint->script);
		return total;
	case STARTUP_MALFORMED:
	case STARTUP_GSSENC_REQUEST:
	case STARTUP_PEER_QUESTION:
	case STARTUP_PROTOCOL_2:
		break;
	}
	fail_msg("a server receives an unknown first message");
	return 0;
}

static size_t take_message(struct sim_server *server, const uint8_t *data, size_t available)
{
	const uint8_t *body = data + FRAME_HEADER_SIZE;
	struct frame frame;

	if (frame_peek(data, available, UINT32_MAX, &frame) != FRAME_WHOLE)
		return 0;
	sim_trace_message("server", server->number, "receives", data, frame.total);
	sim_postgres_handle(&server->session, (char)frame.type, body, frame_body_size(&frame));
	return frame.total;
}

static bool work(struct sim_server *server)
{
	size_t length, used;
	const uint8_t *output = scripted_output(server->endpoint->script, &length);

	if (server->session.stuck) {
		sim_postgres_go_on(&server->session, false);
		return !server->session.stuck;
	}
	if (server->read_offset == length || server->session.over)
		return false;
	used = (server->started ? take_message : begin)(
		server, output + server->read_offset, length - server->read_offset);
	server->read_offset += used;
	return used > 0;
}

bool sim_server_work(struct sim_server *server)
{
	return server->endpoint && !server->connecting && !server->has_ended &&
		!is_frozen(server) && work(server);
}

bool sim_server_finish(struct sim_server *server)
{
	if (!server->endpoint || server->has_ended || is_frozen(server) ||
		!server->session.stuck)
		return false;
	sim_trace("server", server->number, "ends t", server->session.running, NULL);
	sim_postgres_go_on(&server->session, true);
	return true;
}

bool sim_server_deliver(struct sim_server *server, size_t most)
{
	struct sim_postgres *pg = &server->session;
	const size_t said = sim_postgres_output(pg), length = said < most ? said : most;

	if (!server->endpoint || server->has_ended || is_frozen(server) || length == 0)
		return false;
	sim_trace("server", server->number, "delivers", (long)length, NULL);
	scripted_feed(server->endpoint->script, pg->out.data + pg->taken, length);
	sim_postgres_take(pg, length);
	scripted_run(server->endpoint->script);
	return true;
}

bool sim_server_connected(struct sim_server *server, int error)
{
	if (!server->endpoint || !server->connecting || is_frozen(server))
		return false;
	if (server->session.host && server->session.host->state == SIM_HOST_REFUSES)
		error = ECONNREFUSED;
	sim_trace("server", server->number, "is reached, or not:", error, NULL);
	server->connecting = false;
	server->has_ended = error != 0;
	scripted_connected(server->endpoint->script, error);
	return true;
}

bool sim_server_send_unsolicited(struct sim_server *server)
{
	struct buffer *out = &server->session.out;

	if (!server->endpoint || !server->started || server->has_ended || is_frozen(server))
		return false;
	sim_trace("server", server->number, "sends an unsolicited message", 0, NULL);
	server->was_unasked = true;
	switch (sim_below(3)) {
	case 0:
		writer_notice(out, "WARNING", "01000", "unasked");
		break;
	case 1:
		writer_parameter_status(
			out, server->session.host ? "is_superuser" : "in_hot_standby", "off");
		break;
	default:
		letters_write(out, FROM_SERVER, "A");
	}
	return true;
}

bool sim_server_fail(struct sim_server *server, bool tells, bool breaks)
{
	struct buffer *out = &server->session.out;

	if (!server->endpoint || server->connecting || server->has_ended)
		return false;
	sim_trace("server", server->number, tells ? "fails with an error" : "fails", breaks,
		NULL);
	if (tells && server->started) {
		writer_error(out, "FATAL", "57P01", SIM_SHUTDOWN_ERROR);
		sim_server_deliver(server, SIZE_MAX);
	}
	server->has_ended = true;
	if (is_closed(server->endpoint))
		return true;
	if (breaks)
		scripted_break(server->endpoint->script);
	else
		scripted_end(server->endpoint->script);
	scripted_run(server->endpoint->script);
	return true;
}

void sim_server_end(struct sim_server *server)
{
	sim_trace("server", server->number, "is closed", 0, NULL);
	/* A COPY or a slow statement ends with the connection. */
	while (server->started && !server->has_ended && !server->session.stuck && work(server))
		;
	fake_forget(server->endpoint);
	sim_server_free(server);
}

void sim_server_free(struct sim_server *server)
{
	server->endpoint = NULL;
	sim_postgres_free(&server->session);
}
