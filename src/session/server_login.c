/* SPDX-License-Identifier: ISC */
#include "session/server_login.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "crypt/md5.h"
#include "model/peer.h"
#include "net/tls.h"
#include "session/auth/derivation.h"
#include "session/cancel.h"
#include "session/ending.h"
#include "session/launch.h"
#include "session/pairing.h"
#include "session/relay_rules.h"
#include "session/replication.h"
#include "session/server_route.h"
#include "session/server_session.h"
#include "session/tls_setup.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/report.h"
#include "wire/writer.h"

enum {
	/* Parameters that a server may report while it logs in, in bytes. */
	WELCOME_MAX = 64 * 1024,
	/* A message of a login that is longer than this is not waited for. */
	MESSAGE_MAX = 64 * 1024,
};

struct server_login {
	struct server_route route; /* to which host it goes */
	bool asked_for_tls; /* and the server has not answered yet */
	struct scram_client scram;
	uint8_t end_point[TLS_BINDING_MAX]; /* what the exchange is bound to, if it is */
	size_t end_point_length;
	struct buffer
		untracked; /* ParameterStatus messages of what is not tracked, as they came */
	size_t reported; /* bytes of all parameters so far */
	struct scram_keys keys; /* derived for this login */
	bool for_cancel; /* launched for a cancel request, maybe beyond the pool's size */
	bool scram_begun;
	bool scram_verified; /* the server has proved that it knows the secret too */
	bool authenticated; /* AuthenticationOk has come */
	bool wrong_secret; /* we have none that the server could accept */
	bool insecure; /* the connection was lost in the midst of a TLS handshake */
	bool told; /* the server, or our own lack of a secret, refused the login for good */
};

static const struct stream_handlers login_handlers;

static void fail(struct server_link *server, enum reason reason)
{
	server_close_for(server, reason);
}

/* --- the start ---------------------------------------------------------------------------- */

/* One that has not begun to connect; NULL: no memory. */
static struct server_link *make(struct pool *pool)
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
	server->link.id = ++registry->last_id;
	server->link.stream.loop = registry->loop;
	server->link.stream.fd = -1;
	server->link.parameters = parameters_empty(registry->parameters);
	server->link.rules = relay_unused_server;
	server->link.connect_time = server->link.request_time = loop_now(registry->loop);
	server->login = login;
	TAILQ_INSERT_HEAD(&pool->servers[SERVERS_LOGIN], &server->link, place);
	pool->server_count[SERVERS_LOGIN]++;
	limits_take_server(pool);
	counters_server_opened(pool->database);
	return server;
}

bool server_login_begin(struct pool *pool, const struct server_link *for_cancel)
{
	struct server_link *server = make(pool);
	struct server_login *login;

	if (!server)
		return false;
	pool->last_launch = server->link.connect_time;
	login = server->login;
	login->for_cancel = for_cancel != NULL || peer_of_pool(pool) > 0;
	if (for_cancel)
		return server_route_follow(&login->route, server, for_cancel, &login_handlers);
	return server_route_begin(&login->route, server, &login_handlers);
}

bool server_login_begin_for(struct client_link *client)
{
	struct server_link *server = make(client->link.pool);

	if (!server)
		return false;
	server->replication = client->replication;
	server->launched_for = client;
	client->replica->server = server;
	return server_route_begin(&server->login->route, server, &login_handlers);
}

/* --- the end of it ------------------------------------------------------------------------ */

static void free_login(struct server_link *server)
{
	struct server_login *login = server->login;

	if (!login)
		return;
	server_route_end(&login->route);
	scram_client_free(&login->scram);
	buffer_free(&login->untracked);
	explicit_bzero(login, sizeof(*login));
	free(login);
	server->login = NULL;
}

/* Closed by us for reasons of our own: the server is not to blame. */
static bool is_failure(enum reason reason)
{
	switch ((int)reason) {
	case REASON_PAUSE_MODE:
	case REASON_UNSAFE_ON_SUSPEND:
	case REASON_SUSPEND_TIMEOUT:
	case REASON_DISKO_OVER:
	case REASON_CONNECT_STRING_CHANGED:
	case REASON_DATABASE_CONFIGURATION_CHANGED:
	case REASON_DATABASE_REMOVED:
	case REASON_EVICTED:
	case REASON_TOO_MANY_SERVERS:
	case REASON_CANCEL_FOR_CLIENT_NOW_IDLE:
	case REASON_REPLICATION_CLIENT_WAS_CLOSED:
		return false;
	default:
		return true;
	}
}

/* A server that is only starting up will let us in soon. */
static bool is_starting(const struct failure *why)
{
	return strcmp(why->sqlstate, "57P03") == 0;
}

/* What metrics call the failure. */
static enum connect_outcome outcome_of(const struct failure *why, bool insecure)
{
	static const struct {
		enum reason reason;
		enum connect_outcome outcome;
	} outcomes[] = {
		{REASON_CONNECT_TIMEOUT, CONNECT_TIMED_OUT},
		{REASON_SERVER_DNS_LOOKUP_FAILED, CONNECT_DNS},
		{REASON_SERVER_REFUSED_SSL, CONNECT_TLS},
		{REASON_BAD_SSLREQ_ANSWER, CONNECT_TLS},
		{REASON_SSLREQ_PROCESSING_FAILED, CONNECT_TLS},
		{REASON_UNENCRYPTED_DATA_AFTER_SSL_RESPONSE, CONNECT_TLS},
		{REASON_FAILED_TO_ANSWER_AUTHREQ, CONNECT_AUTH},
		{REASON_SERVER_NO_SASL_MECHANISM, CONNECT_AUTH},
		{REASON_SERVER_INVALID_SIGNATURE, CONNECT_AUTH},
		{REASON_CANNOT_CONNECT, CONNECT_REFUSED},
		{REASON_CONNECT_FAILED, CONNECT_REFUSED},
	};

	if (insecure)
		return CONNECT_TLS;
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		if (outcomes[i].reason == why->reason)
			return outcomes[i].outcome;
	}
	/* Class 28, invalid authorization. */
	return why->reason == REASON_SERVER_ERROR && strncmp(why->sqlstate, "28", 2) == 0
		? CONNECT_AUTH
		: CONNECT_OTHER;
}

/*
 * What a server says to a login for replication concerns nobody else; whether one can connect to
 * it at all, and whether it has started, concerns everybody.
 */
static bool concerns_client_only(
	const struct server_link *server, enum server_state state, const struct failure *why)
{
	return server->replication && state != SERVER_CONNECTING && !is_starting(why);
}

void server_login_end(
	struct server_link *server, enum server_state state, const struct failure *why)
{
	struct client_link *client = replication_let_go(server);
	const bool insecure = server->login && server->login->insecure;
	const bool told = server->login && server->login->told;
	const bool wanting = server->login && server->login->route.wanting;
	const bool wrong_secret = server->login && server->login->wrong_secret;
	const struct failure wrong = failure_of(REASON_SERVER_WRONG_PASSWORD_TYPE);

	free_login(server);
	if (state > SERVER_PREPARING || !is_failure(why->reason))
		return;
	counters_connected(server, wanting ? CONNECT_OTHER : outcome_of(why, insecure));
	if (concerns_client_only(server, state, why)) {
		if (client)
			client_close_for(client, REASON_LOGIN_FAILED);
		return;
	}
	if (!wanting)
		counters_host(server, false);
	server->link.pool->wanting = wanting;
	server->link.pool->last_launch = server->link.connect_time;
	if (wrong_secret)
		launch_failed(server->link.pool, &wrong, true);
	launch_failed(server->link.pool, why, told);
}

/* What comes before the tracked parameters. */
static void write_head(const struct server_link *server, struct buffer *head)
{
	buffer_clear(head);
	writer_authentication(head, AUTH_OK, NULL, 0);
	buffer_append(head, server->login->untracked.data, server->login->untracked.length);
}

/* The pool's first login since it was made or its welcome forgotten: the welcome is its. */
static bool keep_welcome(struct server_link *server)
{
	struct pool *pool = server->link.pool;
	struct buffer *head = &pool->welcome_head;

	if (pool->welcome)
		return true;
	write_head(server, head);
	if (head->failed) {
		buffer_free(head);
		return false;
	}
	pool->welcome = parameters_ref(server->link.parameters);
	return true;
}

void server_login_hurry(struct server_link *server, usec_t now)
{
	if (server->login)
		server_route_hurry(&server->login->route, now);
}

/* It is as new, and nobody's yet. */
static void finish(struct server_link *server)
{
	free_login(server);
	counters_connected(server, CONNECT_OK);
	counters_host(server, true);
	server->transaction_status = 'I';
	stream_set_handlers(&server->link.stream, &server_session_handlers);
	server->link.rules = relay_unused_server;
}

/* One for replication: what it was told to start with is no welcome for others. */
static void finish_for_client(struct server_link *server)
{
	struct buffer head;

	buffer_init(&head);
	write_head(server, &head);
	finish(server);
	/* What a server refuses to others it goes on to refuse. */
	server->link.pool->failing = server->link.pool->failing && server->link.pool->refused;
	replication_begin(server, &head);
	buffer_free(&head);
}

static void finish_for_all(struct server_link *server)
{
	finish(server);
	/* Its place first, so that those who are welcomed now find it. */
	server_enter(server, SERVER_IDLE);
	launch_succeeded(server->link.pool);
	if (server->link.state == SERVER_IDLE)
		pairing_offer(server);
}

void server_login_done(struct server_link *server)
{
	struct pool *pool = server->link.pool;

	/* Without a welcome nobody could be let in to use it, and one server would follow another. */
	if (!server->replication && !keep_welcome(server)) {
		fail(server, REASON_NO_MEMORY);
		return;
	}
	if (server->replication)
		finish_for_client(server);
	else
		finish_for_all(server);
	/* There may be more to serve than this one: the next can be launched now. */
	if (pool_wanted_servers(pool) + pool_welcoming_clients(pool) + pool->cancels_due > 0 ||
		!TAILQ_EMPTY(&pool->cancels))
		pool_needs_work(pool);
}

/* --- messages to the server --------------------------------------------------------------- */

static bool send_message(struct server_link *server, struct buffer *message)
{
	const bool sent = !message->failed &&
		stream_send_bytes(&server->link.stream, message->data, message->length) !=
			STREAM_SENT_NOT;

	buffer_wipe(message);
	return sent;
}

static void send_startup(struct server_link *server)
{
	const struct pool *pool = server->link.pool;
	const struct database_config *config = pool->database->config;
	const char *const pairs[][2] = {
		{"database", config->dbname},
		{"client_encoding", config->client_encoding},
		{"datestyle", config->datestyle},
		{"timezone", config->timezone},
		{"application_name", config->application_name},
	};
	struct buffer message;
	size_t mark;

	buffer_init(&message);
	mark = startup_begin(&message, PROTOCOL_3_0);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (!pairs[i][1])
			continue;
		writer_string(&message, pairs[i][0]);
		writer_string(&message, pairs[i][1]);
	}
	replication_write_startup(server, &message);
	writer_string(&message, "user");
	writer_string(&message, pool->user->name);
	startup_end(&message, mark);
	if (send_message(server, &message))
		server_enter(server, SERVER_AUTHENTICATING);
	else
		fail(server, REASON_STARTUP_PKT_FAILED);
}

/* --- encryption --------------------------------------------------------------------------- */

static void start_tls(struct server_link *server, bool direct)
{
	struct tls_context *context = tls_setup_towards_servers(link_registry(&server->link));
	struct stream *stream = &server->link.stream;

	if (context && tls_connect(stream, context, server->login->route.host, direct))
		return;
	if (tls_error(stream))
		link_log_repeated(&server->link, LEVEL_WARNING, "TLS handshake error: %s",
			tls_error(stream));
	server->login->insecure = true;
	fail(server, REASON_CONNECT_FAILED);
}

/* Protocol: "SSL Session Encryption". */
static void ask_for_tls(struct server_link *server)
{
	struct buffer message;

	buffer_init(&message);
	startup_write_request(&message, SSL_REQUEST_CODE);
	server->login->asked_for_tls = send_message(server, &message);
	if (!server->login->asked_for_tls)
		fail(server, REASON_SSLREQ_PROCESSING_FAILED);
}

static void on_tls_answer(struct server_link *server, const uint8_t *data, size_t length)
{
	const struct settings *settings = link_registry(&server->link)->settings;

	server->login->asked_for_tls = false;
	if (data[0] == 'S' && length > 1)
		fail(server, REASON_UNENCRYPTED_DATA_AFTER_SSL_RESPONSE);
	else if (data[0] == 'S')
		start_tls(server, false);
	else if (data[0] != 'N' || length > 1)
		fail(server, REASON_BAD_SSLREQ_ANSWER);
	else if (settings->server_tls_sslmode >= TLS_MODE_REQUIRE)
		fail(server, REASON_SERVER_REFUSED_SSL);
	else
		send_startup(server);
}

/* Connected: the first bytes. Sockets of this machine need no TLS. */
static void begin(struct server_link *server)
{
	const struct settings *settings = link_registry(&server->link)->settings;

	server->login->asked_for_tls = false;
	server->login->insecure = false;
	if (settings->server_tls_sslmode == TLS_MODE_DISABLE || !server->login->route.host)
		send_startup(server);
	else if (settings->server_tls_negotiation == TLS_NEGOTIATION_DIRECT)
		start_tls(server, true);
	else
		ask_for_tls(server);
}

/* The secret to log in with: the database's own password, else the pool's. */
static const char *secret_of(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;

	if (pool_is_forced(pool) && pool->database->config->password)
		return pool->database->config->password;
	return pool_secret(pool);
}

/* What a client typed may look like a stored secret and is none. */
static enum secret_kind secret_kind_of(const struct server_link *server)
{
	const struct credential *credential = server->link.pool->credential;
	const char *secret = secret_of(server);

	return credential && credential->is_password && secret == credential->secret
		? SECRET_PLAIN
		: secret_kind(secret);
}

/* --- authentication ----------------------------------------------------------------------- */

/* We have no secret of a kind that the server could accept. */
static void refuse_secret(struct server_link *server, const char *method, const char *why)
{
	link_log_kind(&server->link, LEVEL_ERROR, why, 0, "cannot do %s authentication: %s",
		method, why);
	/* Those who wait hear the reason; the server's own line is about what we could not do. */
	server->login->wrong_secret = true;
	fail(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
}

static void answer_cleartext(struct server_link *server)
{
	const char *secret = secret_of(server);
	struct buffer message;

	if (secret_kind_of(server) != SECRET_PLAIN) {
		refuse_secret(server, "cleartext", "wrong password type");
		return;
	}
	buffer_init_secret(&message);
	writer_password(&message, secret, strlen(secret) + 1);
	if (!send_message(server, &message))
		fail(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
}

static void answer_md5(struct server_link *server, struct reader *reader)
{
	const uint8_t *salt = reader_bytes(reader, 4);
	const char *secret = secret_of(server);
	const enum secret_kind kind = secret_kind_of(server);
	char hashed[36], response[36];
	struct buffer message;

	if (!salt) {
		fail(server, REASON_BAD_PKT_HEADER);
		return;
	}
	if (kind == SECRET_MD5)
		memcpy(hashed, secret, sizeof(hashed));
	if ((kind != SECRET_MD5 && kind != SECRET_PLAIN) ||
		(kind == SECRET_PLAIN &&
			!md5_secret(secret, server->link.pool->user->name, hashed)) ||
		!md5_response(hashed, salt, response)) {
		refuse_secret(server, "MD5", "wrong password type");
		return;
	}
	buffer_init_secret(&message);
	writer_password(&message, response, sizeof(response));
	explicit_bzero(hashed, sizeof(hashed));
	explicit_bzero(response, sizeof(response));
	if (!send_message(server, &message))
		fail(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
}

/* The best mechanism of the server's list; NULL: none that we know. */
static const char *choose_mechanism(struct server_login *login, struct reader *reader)
{
	const bool bindable = login->end_point_length > 0;
	const char *name, *found = NULL;

	while ((name = reader_string(reader)) != NULL && name[0] != '\0') {
		if (bindable && strcmp(name, SCRAM_MECHANISM_PLUS) == 0)
			found = SCRAM_MECHANISM_PLUS;
		else if (!found && strcmp(name, SCRAM_MECHANISM) == 0)
			found = SCRAM_MECHANISM;
	}
	if (found && strcmp(found, SCRAM_MECHANISM_PLUS) == 0)
		login->scram.binding = (struct scram_binding){
			.type = SCRAM_BINDING_TYPE,
			.data = login->end_point,
			.length = login->end_point_length,
		};
	return reader->failed ? NULL : found;
}

/* Keys that a client proved, if the server stores the very same secret. */
static const struct scram_keys *passed_through(const struct server_link *server)
{
	const struct pool *pool = server->link.pool;
	const struct user_keys *keys = pool_keys(pool);

	/* With a forced user the keys are somebody else's. */
	if (pool->database->config->user || !keys || !keys->client_key_known)
		return NULL;
	return &keys->keys;
}

static void begin_scram(struct server_link *server, struct reader *reader)
{
	struct server_login *login = server->login;
	const enum secret_kind kind = secret_kind_of(server);
	uint8_t nonce[SCRAM_NONCE_SIZE];
	const char *mechanism;
	struct buffer first, message;

	login->end_point_length = tls_end_point(&server->link.stream, login->end_point);
	mechanism = choose_mechanism(login, reader);
	if (!mechanism) {
		login->told = true;
		fail(server, REASON_SERVER_NO_SASL_MECHANISM);
		return;
	}
	if (kind == SECRET_SCRAM && !passed_through(server)) {
		refuse_secret(server, "SCRAM",
			"password is SCRAM secret but client authentication did not provide SCRAM keys");
		return;
	}
	if (kind != SECRET_PLAIN && kind != SECRET_SCRAM) {
		refuse_secret(server, "SCRAM", "wrong password type");
		return;
	}
	buffer_init(&first);
	buffer_init(&message);
	random_fill(&server->link.stream.loop->random, nonce, sizeof(nonce));
	login->scram_begun = scram_client_first(&login->scram, nonce, &first) == SCRAM_GOOD;
	writer_sasl_initial(&message, mechanism, first.data, first.length);
	buffer_free(&first);
	if (!login->scram_begun || !send_message(server, &message))
		fail(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
}

static void answer_scram(struct server_link *server, const struct scram_keys *keys)
{
	struct buffer final, message;
	enum scram_result result;

	buffer_init(&final);
	buffer_init(&message);
	result = scram_client_answer(&server->login->scram, keys, &final);
	writer_password(&message, final.data, final.length);
	buffer_free(&final);
	if (result != SCRAM_GOOD || !send_message(server, &message))
		fail(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
}

static struct server_link *find_login(const struct pool *pool, uint64_t id)
{
	struct link *link;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_LOGIN], place) {
		if (link->id == id)
			return server_of(link);
	}
	return NULL;
}

/* The keys for the salt that the server asked for are there. */
static void derived(struct registry *registry, const struct derivation_owner *owner,
	const struct scram_secret *parameters, const struct scram_keys *keys)
{
	const struct pool *pool;

	(void)registry;
	(void)parameters;
	TAILQ_FOREACH (pool, &owner->user->pools, in_user) {
		struct server_link *server = find_login(pool, owner->link);

		if (!server)
			continue;
		if (keys)
			answer_scram(server, keys);
		else
			fail(server, REASON_NO_MEMORY);
		return;
	}
}

static void continue_scram(struct server_link *server, struct reader *reader)
{
	struct server_login *login = server->login;
	struct registry *registry = link_registry(&server->link);
	const size_t length = reader_left(reader);
	const char *message = (const char *)reader_bytes(reader, length);
	const char *secret = secret_of(server);
	const struct derivation_owner owner = {
		.link = server->link.id,
		.user = server->link.pool->user,
		.urgent = true,
	};
	struct scram_secret parameters = {0};

	if (!login->scram_begun ||
		scram_client_challenge(&login->scram, message, length) != SCRAM_GOOD) {
		fail(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
		return;
	}
	if (secret_kind_of(server) != SECRET_PLAIN) {
		const struct scram_keys *keys = passed_through(server);

		if (keys)
			answer_scram(server, keys);
		else
			fail(server, REASON_FAILED_TO_ANSWER_AUTHREQ);
		return;
	}
	parameters.iterations = login->scram.iterations;
	parameters.salt_length = login->scram.salt_length;
	memcpy(parameters.salt, login->scram.salt, login->scram.salt_length);
	if (!derivation_start(registry, &owner, secret, &parameters, derived))
		fail(server, REASON_NO_MEMORY);
}

/* It has not shown that it knows the secret, and those who wait are told so. */
static void disbelieve(struct server_link *server)
{
	server->login->told = true;
	fail(server, REASON_SERVER_INVALID_SIGNATURE);
}

static void finish_scram(struct server_link *server, struct reader *reader)
{
	const size_t length = reader_left(reader);
	const char *message = (const char *)reader_bytes(reader, length);

	server->login->scram_verified =
		scram_client_verify(&server->login->scram, message, length) == SCRAM_GOOD;
	if (!server->login->scram_verified)
		disbelieve(server);
}

static void on_authentication(struct server_link *server, const uint8_t *body, size_t length)
{
	struct reader reader;
	uint32_t request;

	reader_init(&reader, body, length);
	request = reader_int32(&reader);
	if (reader.failed) {
		fail(server, REASON_BAD_PKT_HEADER);
		return;
	}
	switch (request) {
	case AUTH_OK:
		/* A server that began SCRAM has to prove itself before it is believed. */
		if (server->login->scram_begun && !server->login->scram_verified)
			disbelieve(server);
		else
			server->login->authenticated = true;
		break;
	case AUTH_CLEARTEXT:
		answer_cleartext(server);
		break;
	case AUTH_MD5:
		answer_md5(server, &reader);
		break;
	case AUTH_SASL:
		begin_scram(server, &reader);
		break;
	case AUTH_SASL_CONTINUE:
		continue_scram(server, &reader);
		break;
	case AUTH_SASL_FINAL:
		finish_scram(server, &reader);
		break;
	default:
		link_log_repeated(&server->link, LEVEL_ERROR,
			"unknown/unsupported auth method: %u", request);
		refuse_secret(server, "this", "wrong password type");
		break;
	}
}

/* --- what a server says while it logs us in ----------------------------------------------- */

static void on_parameter(
	struct server_link *server, const uint8_t *message, const struct frame *frame)
{
	struct registry *registry = link_registry(&server->link);
	struct server_login *login = server->login;
	const char *name, *value;
	int index;

	login->reported += frame->total;
	if (login->reported > WELCOME_MAX ||
		!report_parse_parameter(
			frame_body(message), frame_body_size(frame), &name, &value)) {
		fail(server, REASON_BROKEN_PARAMETER_STATUS);
		return;
	}
	index = parameter_index(registry->parameters, name);
	if (index >= 0 ? !server_set_parameter(&server->link, (unsigned)index, value)
		       : !buffer_append(&login->untracked, message, frame->total))
		fail(server, REASON_NO_MEMORY);
}

static void on_key(struct server_link *server, const uint8_t *body, size_t length)
{
	if (length < STARTUP_KEY_MIN || length > STARTUP_KEY_MAX || server->cancel_key) {
		fail(server, REASON_BAD_PKT_HEADER);
		return;
	}
	server->cancel_key = malloc(length);
	if (!server->cancel_key) {
		fail(server, REASON_NO_MEMORY);
		return;
	}
	memcpy(server->cancel_key, body, length);
	server->cancel_key_length = (uint16_t)length;
}

/* The line has no prefix, and is not wanted from each of many pools on a server that is full. */
static void log_server_refusal(
	const struct server_link *server, const char *severity, const char *text)
{
	const struct log_likeness likeness = {
		.kind = "server login failed", .who = server->link.pool->database->name};

	log_write_repeated(
		LEVEL_WARNING, NULL, &likeness, "server login failed: %s %s", severity, text);
}

static void on_error(struct server_link *server, const uint8_t *body, size_t length)
{
	struct report report;
	struct failure why;
	const char *severity;

	report_parse(body, length, &report);
	severity = report.severity ? report.severity : "FATAL";
	why = failure_from_server(report.text, report.sqlstate);
	if (server->replication && !is_starting(&why)) {
		link_log_repeated(&server->link, LEVEL_ERROR, "S: login failed: %s: %s",
			severity, why.text);
		fail(server, REASON_LOGIN_FAILED);
		return;
	}
	log_server_refusal(server, severity, why.text);
	server->login->told = !is_starting(&why);
	server_close(server, &why);
}

/* A session of physical replication knows no SQL. */
static const char *connect_query(const struct server_link *server)
{
	if (server->replication == REPLICATION_PHYSICAL)
		return NULL;
	return server->link.pool->database->config->connect_query;
}

static void on_ready(struct server_link *server, const uint8_t *body, size_t length)
{
	const char *query = connect_query(server);

	if (!server->login->authenticated || length != 1 || body[0] != 'I') {
		fail(server, REASON_BAD_PKT_HEADER);
	} else if (query) {
		server_enter(server, SERVER_PREPARING);
		stream_set_handlers(&server->link.stream, &server_session_handlers);
		server_ask(server, query);
	} else {
		server_login_done(server);
	}
}

static void on_message(
	struct server_link *server, const uint8_t *message, const struct frame *frame)
{
	const uint8_t *body = frame_body(message);
	const size_t length = frame_body_size(frame);

	switch (frame->type) {
	case PQ_AUTHENTICATION:
		on_authentication(server, body, length);
		break;
	case PQ_PARAMETER_STATUS:
		on_parameter(server, message, frame);
		break;
	case PQ_BACKEND_KEY_DATA:
		on_key(server, body, length);
		break;
	case PQ_NOTICE_RESPONSE:
		break;
	case PQ_ERROR_RESPONSE:
		on_error(server, body, length);
		break;
	case PQ_READY_FOR_QUERY:
		on_ready(server, body, length);
		break;
	default:
		link_log_repeated(&server->link, LEVEL_ERROR, "unknown pkt from server: '%c'",
			frame->type >= ' ' && frame->type < 127 ? frame->type : '?');
		fail(server, REASON_UNKNOWN_PKT_FROM_SERVER);
		break;
	}
}

/* --- events ------------------------------------------------------------------------------- */

static void run(struct server_link *server, const uint8_t *data, size_t length)
{
	struct frame frame;
	enum frame_result found = FRAME_SHORT;

	while (server->link.state <= SERVER_AUTHENTICATING && length > 0) {
		found = frame_peek(data, length, MESSAGE_MAX, &frame);
		if (found != FRAME_WHOLE)
			break;
		on_message(server, data, &frame);
		data += frame.total;
		length -= frame.total;
	}
	if (server->link.state == SERVER_CLOSED || length == 0)
		return;
	if (server->link.state <= SERVER_AUTHENTICATING && found == FRAME_MALFORMED) {
		fail(server, REASON_BAD_PKT_HEADER);
		return;
	}
	/*
	 * It goes on talking though nobody asked it anything. A client may have it already, and
	 * has to be told whole messages.
	 */
	if (server->link.state > SERVER_AUTHENTICATING)
		server->dirty = true;
	if (!link_hold(&server->link, data, length))
		server_close_for(server, REASON_NO_MEMORY);
}

static void on_readable(struct stream *stream)
{
	struct server_link *server = (struct server_link *)stream;
	struct loop *loop = stream->loop;
	uint8_t *into = loop->receive + LOOP_RECEIVE_HEADROOM;
	const uint32_t held = server->link.held_length;
	const ssize_t got = stream_receive(stream, into, LOOP_RECEIVE_SIZE);

	if (got == STREAM_AGAIN)
		return;
	if (got <= 0) {
		if (tls_error(stream))
			link_log_repeated(&server->link, LEVEL_WARNING,
				"TLS handshake error: %s", tls_error(stream));
		server->login->insecure = tls_is_shaking_hands(stream);
		server_route_lost(&server->login->route, REASON_SERVER_CONN_CRASHED);
		return;
	}
	server->link.request_time = loop_now(loop);
	server_route_settle(&server->login->route);
	if (server->login->asked_for_tls) {
		on_tls_answer(server, into, (size_t)got);
		return;
	}
	if (held) {
		memcpy(into - held, server->link.held, held);
		link_drop_held(&server->link);
	}
	run(server, into - held, (size_t)got + held);
}

static void on_drained(struct stream *stream)
{
	(void)stream;
}

static void log_connected(const struct server_link *server)
{
	const struct address local = address_local(server->link.stream.fd);
	char text[ADDRESS_TEXT_SIZE];

	if (!link_registry(&server->link)->settings->log_connections)
		return;
	if (local.family == AF_UNIX)
		link_log(&server->link, LEVEL_LOG, "new connection to server");
	else
		link_log(&server->link, LEVEL_LOG, "new connection to server (from %s)",
			address_text(&local, text));
}

static void on_connected(struct stream *stream, int error)
{
	struct server_link *server = (struct server_link *)stream;
	char address[ADDRESS_TEXT_SIZE];

	if (error) {
		link_log_repeated(&server->link, LEVEL_WARNING,
			"sbuf_connect failed to connect to %s: %s",
			address_text(&server->link.remote, address), strerror(error));
		server_route_next(&server->login->route, REASON_CONNECT_FAILED);
		return;
	}
	log_connected(server);
	if (cancel_use_connection(server))
		return;
	/* Whoever had asked for it is served: there may be no room for one more server. */
	if (server->login->for_cancel)
		fail(server, REASON_CANCEL_FOR_CLIENT_NOW_IDLE);
	else
		begin(server);
}

static void on_secured(struct stream *stream)
{
	struct server_link *server = (struct server_link *)stream;
	const bool wanted = link_registry(&server->link)->settings->log_connections;
	char text[TLS_TEXT_SIZE];

	link_log(&server->link, wanted ? LEVEL_LOG : LEVEL_NOISE, "SSL established: %s",
		tls_text(stream, text));
	server_route_settle(&server->login->route);
	send_startup(server);
}

static const struct stream_handlers login_handlers = {
	.readable = on_readable,
	.drained = on_drained,
	.connected = on_connected,
	.secured = on_secured,
};
