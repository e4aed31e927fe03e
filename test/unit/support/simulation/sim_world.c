/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_world.h"

#include <errno.h>

#include "daemon/janitor.h"
#include "session/notify/channels.h"
#include "session/serving/control.h"
#include "support/simulation/sim_hosts.h"
#include "support/simulation/sim_moves.h"
#include "support/simulation/sim_notes.h"
#include "support/simulation/sim_oracle.h"
#include "support/simulation/sim_random.h"
#include "support/simulation/sim_tokens.h"
#include "support/simulation/sim_trace.h"
#include "support/simulation/sim_workers.h"
#include "wire/startup.h"

enum { OLD_KEYS = 8 };

/* A connection with a cancel request. */
struct canceler {
	struct endpoint *endpoint; /* NULL: unused */
	struct buffer out;
	size_t delivered;
};

static struct sim_client clients[SIM_CLIENTS];
static struct canceler cancelers[SIM_CANCELERS];
static struct sim_profile profile;
static unsigned numbers; /* number of clients so far */
static uint8_t old_keys[OLD_KEYS][32]; /* keys of closed clients */
static char settings[2048];
static struct janitor janitors[FAKE_WORKERS_MOST];
static bool is_running;
static bool was_paused; /* in the last step, with so many active servers: */
static unsigned active_before;

/* --- set-up ------------------------------------------------------------------------------- */

static void draw_setting(const char *name, const char *const *values, unsigned count)
{
	snprintf(settings + strlen(settings), sizeof(settings) - strlen(settings), "%s = %s\n",
		name, values[sim_below(count)]);
}

#define DRAW(name, ...)                                                                        \
	draw_setting(name, (const char *const[]){__VA_ARGS__},                                 \
		COUNT(((const char *const[]){__VA_ARGS__})))

static void draw_host_settings(void)
{
	DRAW("server_connect_timeout", "3", "5");
	DRAW("host_check_interval", "1", "5", "5", "0");
	DRAW("server_check_role", "login", "always");
	DRAW("server_failover_check", "0", "1", "1");
}

/* What several databases share. */
static void draw_shared_limits(void)
{
	DRAW("max_user_connections", "0", "0", "1", "3");
	DRAW("max_server_connections", "0", "0", "2", "4");
}

/* Each worker would have a host watch of its own: hosts do not change in these runs. */
static void draw_databases(void)
{
	if (fake_workers > 1) {
		sim_hosts_count = 0;
		sim_workers_draw(settings, sizeof(settings));
	} else {
		sim_databases = 2;
		sim_hosts_draw(settings, sizeof(settings));
	}
}

static void draw_settings(const char *pool_mode)
{
	draw_databases();
	snprintf(settings + strlen(settings), sizeof(settings) - strlen(settings),
		"[pgbouncer]\nauth_type = trust\n"
		"log_connections = 0\nlog_disconnections = 0\nlog_pooler_errors = 0\n"
		"server_login_retry = 1\nclient_login_timeout = 0\npool_mode = %s\n",
		pool_mode);
	DRAW("default_pool_size", "1", "2", "3", "4");
	DRAW("reserve_pool_size", "0", "0", "1");
	DRAW("reserve_pool_timeout", "0", "1");
	DRAW("max_db_connections", "0", "0", "1", "2", "3");
	DRAW("max_client_conn", "100", "100", "6");
	DRAW("max_client_conn_per_address", "0", "50");
	if (fake_workers == 1 || SIM_SHARES_LIMITS)
		draw_shared_limits();
	DRAW("min_pool_size", "0", "0", "1", "2");
	DRAW("server_login_concurrency", "1", "2", "8");
	DRAW("server_lifetime", "3600", "3600", "1", "3", "0");
	DRAW("server_round_robin", "0", "1");
	DRAW("server_check_delay", "0", "30");
	DRAW("server_check_query", "", "select 1", "select 1");
	DRAW("query_wait_timeout", "0", "0", "5");
	DRAW("query_wait_timeout_action", "disconnect", "error");
	DRAW("max_pool_waiters", "0", "0", "1", "3");
	DRAW("query_wait_notify", "0", "1");
	DRAW("pkt_buf", "4096", "4096", "64");
	DRAW("max_pinned", "0", "1", "50%", "100%");
	DRAW("listen", "shared", "shared", "pin");
	if (sim_hosts_count > 0)
		draw_host_settings();
	DRAW("max_prepared_statements", "0", "1", "2", "5", "30");
}

static void draw_profile(const char *pool_mode)
{
	const bool is_session = strcmp(pool_mode, "session") == 0;
	const bool is_tracked =
		!is_session && fake_registry.process->settings->max_prepared_statements > 0;

	profile = (struct sim_profile){
		.transactions = strcmp(pool_mode, "statement") != 0,
		.names = is_session || is_tracked,
		.prepares = (is_session || is_tracked) && sim_chance(50),
		.listens = sim_chance(50),
		.apart = is_session || is_tracked,
		.tracked = is_tracked,
		.set_percent = sim_chance(60) ? 10 + sim_below(30) : 0,
		.pipeline = sim_chance(50) ? 1 : 1 + sim_below(5),
		.error_percent = sim_chance(50) ? 10 : 0,
		.shared = sim_tokens_new(0),
	};
}

void sim_world_begin(uint64_t seed, const char *pool_mode, unsigned workers)
{
	fake_workers = workers;
	sim_random_state = seed;
	draw_settings(pool_mode);
	sim_tokens_clear();
	sim_notes_clear();
	sim_moves_begin();
	sim_trace_begin(seed, settings);
	fake_start(settings);
	draw_profile(pool_mode);
	log_threshold = LEVEL_FATAL;
	for (unsigned i = 0; i < SIM_USERS; i++)
		fake_user(sim_users[i], "secret");
	for (unsigned i = 0; i < workers; i++)
		janitor_start(&janitors[i], fake_registry_of(i), NULL);
	sim_workers_begin();
	sim_server_one_owner = strcmp(pool_mode, "session") == 0;
	memset(old_keys, 0, sizeof(old_keys));
	numbers = sim_server_count = 0;
	was_paused = false;
	is_running = true;
}

void sim_world_end(void)
{
	if (!is_running)
		return;
	is_running = false;
	for (unsigned i = 0; i < fake_workers; i++)
		janitor_stop(&janitors[i]);
	for (unsigned i = 0; i < SIM_CLIENTS; i++)
		sim_client_free(&clients[i]);
	for (unsigned i = 0; i < SIM_SERVERS; i++)
		sim_server_free(&sim_servers[i]);
	for (unsigned i = 0; i < SIM_CANCELERS; i++) {
		cancelers[i].endpoint = NULL;
		buffer_free(&cancelers[i].out);
	}
	fake_end(NULL);
}

/* --- clients and servers ------------------------------------------------------------------ */

static struct sim_client *any_client(void)
{
	return &clients[sim_below(SIM_CLIENTS)];
}

static struct sim_server *any_server(void)
{
	enum { SLOTS_AT_LEAST = 16 }; /* with few servers, more is left to the clients */
	unsigned slots = SIM_SERVERS;

	while (slots > SLOTS_AT_LEAST && !sim_servers[slots - 1].endpoint)
		slots--;
	return &sim_servers[sim_below(slots)];
}

/* NULL: it is in the mail between two workers, or not connected. */
static struct link *link_of(const struct sim_client *client)
{
	if (!client->endpoint || fake_is_in_mail(client->endpoint))
		return NULL;
	return endpoint_link(client->endpoint);
}

/* Several clients may be closed in one step. */
static bool is_connected(const struct sim_client *client)
{
	return client->endpoint && !is_closed(client->endpoint);
}

/* The simulated client at the other end of this link. NULL if there is none. */
static struct sim_client *client_at(const struct link *link)
{
	for (unsigned i = 0; link && i < SIM_CLIENTS; i++)
		if (is_connected(&clients[i]) && link_of(&clients[i]) == link)
			return &clients[i];
	return NULL;
}

struct sim_client *sim_world_client_at(unsigned slot)
{
	return &clients[slot];
}

unsigned sim_world_slot(const struct sim_client *client)
{
	return (unsigned)(client - clients);
}

struct sim_client *sim_world_client(unsigned number)
{
	for (unsigned i = 0; i < SIM_CLIENTS; i++)
		if (clients[i].endpoint && clients[i].number == number)
			return &clients[i];
	return NULL;
}

bool sim_world_is_cancelled(unsigned number)
{
	for (unsigned i = 0; i < SIM_CLIENTS; i++)
		if (clients[i].endpoint && clients[i].number == number)
			return clients[i].cancel_requests > 0;
	return true;
}

unsigned long long sim_world_cancels;

void sim_world_check_cancel(const struct link *server)
{
	const struct sim_client *client = client_at(server->peer);

	if (client && client->cancel_requests == 0)
		fail_msg("client %u is paired with the server that is cancelled for another",
			client->number);
	if (server->state != SERVER_PAIRED && server->state != SERVER_HELD &&
		server->state != SERVER_DRAINING)
		fail_msg("a server is cancelled in state %u", server->state);
	sim_world_cancels += client != NULL;
}

struct sim_client *sim_world_client_of(const struct server_link *server)
{
	return client_at(server->asked_for ? &server->asked_for->link : server->link.peer);
}

static struct sim_client *client_of_server(const struct link *server)
{
	return sim_world_client_of((const struct server_link *)server);
}

/* --- causes for closing ------------------------------------------------------------------- */

static void add_close_cause_without_server(enum sim_close_cause cause)
{
	/* Of several hosts another one may live: clients wait for it. */
	if (cause == SIM_NO_SERVER && sim_hosts_count > 0)
		return;
	for (unsigned i = 0; i < SIM_CLIENTS; i++) {
		struct link *link = is_connected(&clients[i]) ? link_of(&clients[i]) : NULL;

		if (!is_connected(&clients[i]) || (link && link->peer))
			continue;
		clients[i].close_causes |= cause;
		clients[i].has_waited |= cause == SIM_WAITED;
		/* A server that does not answer a question is given up. */
		if (link && client_of(link)->step == CLIENT_STEP_ASKED)
			clients[i].close_causes |= SIM_SERVER_FAILED;
	}
}

/* It is refused if there are too many clients. */
static void add_close_causes_of_logins(void)
{
	const bool is_limited =
		fake_process.settings->max_client_conn < SIM_CLIENTS + SIM_CANCELERS;

	for (unsigned i = 0; i < SIM_CLIENTS; i++) {
		if (is_limited && !clients[i].logged_in)
			clients[i].close_causes |= SIM_TOO_MANY;
		if (sim_workers_was_killed(clients[i].database))
			clients[i].close_causes |= SIM_KILLED;
	}
}

static void add_close_cause(enum sim_close_cause cause)
{
	for (unsigned i = 0; i < SIM_CLIENTS; i++)
		clients[i].close_causes |= cause;
}

/*
 * Notes why a client may be closed in this step. A client paired with a failed server may be.
 */
static void note_close_causes(void)
{
	const struct pool *pool;

	sim_moves_note_pairs();
	for (unsigned i = 0; i < SIM_CLIENTS; i++)
		clients[i].close_causes &= SIM_CLIENT_DISCONNECTED | SIM_BEGAN_TRANSACTION;
	sim_workers_forget_kills();
	add_close_causes_of_logins();
	for (unsigned i = 0; i < SIM_SERVERS; i++) {
		struct sim_client *client = NULL;

		if (sim_servers[i].endpoint &&
			(sim_servers[i].has_ended || sim_servers[i].was_unasked ||
				sim_servers[i].session.had_set_failure))
			client = client_of_server(endpoint_link(sim_servers[i].endpoint));
		if (client)
			client->close_causes |= SIM_SERVER_FAILED;
	}
	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory) {
		if (pool->failing && (sim_hosts_count == 0 || pool->refused))
			add_close_cause(SIM_NO_SERVER);
	}
}

/* --- after each step ---------------------------------------------------------------------- */

static void check_client(struct sim_client *client)
{
	if (!client->endpoint)
		return;
	if (is_closed(client->endpoint)) {
		memcpy(old_keys[client->number % OLD_KEYS], client->key, sizeof(client->key));
		sim_client_end(client);
		return;
	}
	sim_client_check(client);
	if (client->pooler_ended)
		fail_msg("client %u received a FATAL error and is not closed", client->number);
}

static void check_canceler(struct canceler *canceler)
{
	if (!canceler->endpoint || !is_closed(canceler->endpoint))
		return;
	/* Silent connections are closed to make room for clients. */
	if (fake_process.settings->max_client_conn >= SIM_CLIENTS + SIM_CANCELERS)
		assert_received(canceler->endpoint, "");
	fake_forget(canceler->endpoint);
	canceler->endpoint = NULL;
	buffer_free(&canceler->out);
}

/* Waiting clients are in the order of their arrival, and no client is paired during a pause. */
static void check_waiting_order(const struct pool *pool)
{
	usec_t since = 0;
	struct link *link;

	TAILQ_FOREACH (link, &pool->waiting, place) {
		assert_true(client_of(link)->wait_start >= since);
		since = client_of(link)->wait_start;
	}
}

unsigned long long sim_world_asked, sim_world_pinned;

static void count_state(const struct pool *pool)
{
	const struct link *link;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_ACTIVE], place)
		sim_world_asked += link->state == SERVER_ASKING;
	sim_world_pinned += pool->pinned;
}

static void check_active_pools(void)
{
	const bool is_paused = fake_registry.process->operation == OPERATION_PAUSED;
	const struct pool *pool;
	unsigned active = 0;

	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory) {
		check_waiting_order(pool);
		count_state(pool);
		active += pool->server_count[SERVERS_ACTIVE];
	}
	assert_true(!is_paused || !was_paused || active <= active_before);
	was_paused = is_paused;
	active_before = active;
}

static void check_everything(void)
{
	sim_server_collect();
	sim_moves_note_losses();
	sim_moves_check();
	for (unsigned i = 0; i < SIM_SERVERS; i++)
		if (sim_servers[i].endpoint && is_closed(sim_servers[i].endpoint))
			sim_server_end(&sim_servers[i]);
	for (unsigned i = 0; i < SIM_CLIENTS; i++)
		check_client(&clients[i]);
	for (unsigned i = 0; i < SIM_CANCELERS; i++)
		check_canceler(&cancelers[i]);
	check_active_pools();
	fake_check();
	sim_workers_check();
}

/* --- events ------------------------------------------------------------------------------- */

/* Everything, or often only a few bytes. */
static size_t draw_length(void)
{
	return sim_chance(50) ? SIZE_MAX : 1 + sim_below(sim_chance(50) ? 8 : 64);
}

static bool client_connects(void)
{
	struct sim_client *client = any_client();

	if (client->endpoint)
		return false;
	sim_client_begin(client, ++numbers, sim_users[sim_chance(25)]);
	return true;
}

static bool client_sends(void)
{
	return sim_client_send(any_client(), &profile);
}

static bool client_delivers(void)
{
	return sim_client_deliver(any_client(), draw_length());
}

/* The client reads a limited number of bytes from now on, or everything. */
static bool client_reads(void)
{
	struct sim_client *client = any_client();

	if (!client->endpoint)
		return false;
	client->reads_little = sim_chance(40);
	scripted_allow(
		client->endpoint->script, client->reads_little ? sim_below(40) : SCRIPTED_ANY);
	return true;
}

static bool client_is_read(void)
{
	struct sim_client *client = any_client();

	return client->endpoint && scripted_run(client->endpoint->script);
}

static bool client_disconnects(void)
{
	struct sim_client *client = any_client();

	if (!client->endpoint || client->disconnects)
		return false;
	sim_trace("client", client->number, "disconnects", client->owed, NULL);
	client->disconnects = true;
	client->close_causes |= SIM_CLIENT_DISCONNECTED;
	if (sim_chance(50))
		scripted_break(client->endpoint->script);
	else
		scripted_end(client->endpoint->script);
	scripted_run(client->endpoint->script);
	return true;
}

static bool server_connected(void)
{
	struct sim_server *server = any_server();
	const int error = sim_chance(10) ? ECONNREFUSED : 0;

	if (error != 0 && server->endpoint && server->connecting)
		add_close_cause_without_server(SIM_NO_SERVER);
	return sim_server_connected(server, error);
}

static bool server_works(void)
{
	return sim_server_work(any_server());
}

static bool server_finishes(void)
{
	return sim_server_finish(any_server());
}

static bool server_delivers(void)
{
	return sim_server_deliver(any_server(), draw_length());
}

static bool server_reads(void)
{
	struct sim_server *server = any_server();

	if (!server->endpoint || server->connecting)
		return false;
	scripted_allow(server->endpoint->script, sim_chance(60) ? SCRIPTED_ANY : sim_below(40));
	return true;
}

static bool server_is_read(void)
{
	struct sim_server *server = any_server();

	return server->endpoint && scripted_run(server->endpoint->script);
}

static bool server_sends_unsolicited(void)
{
	return sim_server_send_unsolicited(any_server());
}

bool sim_world_fail_server(struct sim_server *server, bool tells, bool breaks)
{
	struct sim_client *client;

	if (!server->endpoint || server->connecting || server->has_ended ||
		is_closed(server->endpoint))
		return false;
	client = client_of_server(endpoint_link(server->endpoint));
	if (client)
		client->close_causes |= SIM_SERVER_FAILED;
	if (endpoint_link(server->endpoint)->state < SERVER_IDLE)
		add_close_cause_without_server(SIM_NO_SERVER);
	/* It logs in, is given to a client, and ends, in one step. */
	if (endpoint_link(server->endpoint)->state < SERVER_IDLE && server->started)
		add_close_cause_without_server(SIM_SERVER_FAILED);
	return sim_server_fail(server, tells, breaks);
}

static bool server_fails(void)
{
	return sim_world_fail_server(any_server(), sim_chance(50), sim_chance(50));
}

/* --- cancel requests ---------------------------------------------------------------------- */

/* The key of a connected client, of a closed one, or an unknown key. */
static size_t draw_key(uint8_t key[32])
{
	struct sim_client *client = any_client();

	memset(key, 0, 32);
	if (sim_chance(80) && client->endpoint && client->logged_in) {
		sim_trace("client", client->number, "is to be cancelled", client->owed, NULL);
		client->cancel_requests++;
		memcpy(key, client->key, client->key_length);
		return client->key_length;
	}
	if (sim_chance(50))
		memcpy(key, old_keys[sim_below(OLD_KEYS)], 32);
	else
		key[sim_below(8)] = (uint8_t)sim_draw();
	return 8;
}

static bool canceler_connects(void)
{
	struct canceler *canceler = &cancelers[sim_below(SIM_CANCELERS)];
	uint8_t key[32];
	size_t length;

	if (canceler->endpoint)
		return false;
	length = draw_key(key);
	fake_process.dealt = sim_below(fake_process.workers);
	canceler->endpoint = fake_accept(-1);
	canceler->delivered = 0;
	startup_write_cancel(&canceler->out, key, length);
	return true;
}

static bool canceler_delivers(struct canceler *canceler, size_t most)
{
	size_t length = canceler->out.length - canceler->delivered;

	if (!canceler->endpoint || length == 0)
		return false;
	length = length < most ? length : most;
	scripted_feed(
		canceler->endpoint->script, canceler->out.data + canceler->delivered, length);
	canceler->delivered += length;
	scripted_run(canceler->endpoint->script);
	return true;
}

static bool any_canceler_delivers(void)
{
	return canceler_delivers(&cancelers[sim_below(SIM_CANCELERS)], draw_length());
}

static bool canceler_disconnects(void)
{
	struct canceler *canceler = &cancelers[sim_below(SIM_CANCELERS)];

	if (!canceler->endpoint)
		return false;
	scripted_end(canceler->endpoint->script);
	scripted_run(canceler->endpoint->script);
	return true;
}

/* --- the operator, and time --------------------------------------------------------------- */

static bool turn_ends(void)
{
	sim_workers_turn();
	return true;
}

static void pass(usec_t time)
{
	add_close_cause_without_server(SIM_WAITED);
	fake_advance(time);
}

static bool time_passes(void)
{
	const usec_t time = sim_below(sim_chance(80) ? 300 : 3000);

	sim_trace("time", 0, "passes, ms", (long)time, NULL);
	pass(time * USEC_PER_MSEC);
	return true;
}

/* Hosts change at the pace of seconds. */
static bool time_passes_for_hosts(void)
{
	return sim_hosts_count > 0 && time_passes();
}

/* As daemon/reload does. */
static void reload(const char *name, const char *value)
{
	struct pool *pool;

	sim_trace("operator", 0, "reloads", 0, name);
	for (unsigned i = 0; i < SIM_CLIENTS; i++)
		clients[i].was_limited |= sim_oracle_has_limits();
	fake_set(name, value);
	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory)
		pool_needs_work(pool);
}

static void act(void)
{
	switch (sim_below(4)) {
	case 0:
		sim_trace("operator", 0, "pauses", 0, NULL);
		control_pause(&fake_registry, NULL);
		break;
	case 1:
		sim_trace("operator", 0, "reconnects", 0, NULL);
		control_reconnect(&fake_registry, NULL);
		break;
	case 2:
		if (sim_chance(50) || (fake_workers > 1 && !SIM_SHARES_LIMITS))
			reload("default_pool_size", sim_chance(50) ? "1" : "3");
		else
			reload("max_server_connections", sim_chance(50) ? "0" : "2");
		break;
	default:
		control_close_unused(&fake_registry);
	}
}

static bool kill_client(struct sim_client *client)
{
	if (!client->endpoint || !link_of(client))
		return false;
	sim_trace("operator", 0, "kills client", client->number, NULL);
	client->close_causes |= SIM_KILLED;
	process_stop_others(&fake_process);
	control_kill_client(&fake_registry, link_number(link_of(client)));
	process_let_others_run(&fake_process);
	return true;
}

static bool operator_acts(void)
{
	if (sim_chance(20))
		return kill_client(any_client());
	process_stop_others(&fake_process);
	act();
	process_let_others_run(&fake_process);
	return true;
}

static bool operator_acts_on_database(void)
{
	if (!sim_workers_act())
		return false;
	add_close_causes_of_logins();
	return true;
}

static bool operator_resumes(void)
{
	if (fake_registry.process->operation == OPERATION_RUNNING)
		return false;
	sim_trace("operator", 0, "resumes", 0, NULL);
	process_stop_others(&fake_process);
	control_resume(&fake_registry, NULL);
	process_let_others_run(&fake_process);
	return true;
}

/* --- the scheduler ------------------------------------------------------------------------ */

static const struct weighted_event {
	bool (*run)(void); /* false: not possible now */
	unsigned weight;
} events[] = {
	{client_connects, 40},
	{client_sends, 200},
	{client_delivers, 300},
	{client_reads, 10},
	{client_is_read, 60},
	{client_disconnects, 2},
	{server_connected, 80},
	{server_works, 400},
	{server_finishes, 60},
	{server_delivers, 400},
	{server_reads, 8},
	{server_is_read, 60},
	{server_sends_unsolicited, 3},
	{server_fails, 2},
	{canceler_connects, 6},
	{any_canceler_delivers, 30},
	{canceler_disconnects, 2},
	{turn_ends, 60},
	{time_passes, 6},
	{time_passes_for_hosts, 6},
	{sim_moves_act, 2},
	{operator_acts, 3},
	{operator_acts_on_database, 3},
	{operator_resumes, 10},
};

static bool (*draw_event(void))(void)
{
	unsigned all = 0, left;
	size_t i = 0;

	for (size_t j = 0; j < COUNT(events); j++)
		all += events[j].weight;
	left = sim_below(all);
	while (left >= events[i].weight)
		left -= events[i++].weight;
	return events[i].run;
}

static bool step(bool (*run)(void))
{
	note_close_causes();
	if (!run())
		return false;
	check_everything();
	return true;
}

void sim_world_run(unsigned steps)
{
	while (steps > 0)
		if (step(draw_event()))
			steps--;
}

/* --- the end of a run --------------------------------------------------------------------- */

/* Checks everything if there was an event; returns whether there was. */
static bool checked(bool did)
{
	if (!did)
		return false;
	check_everything();
	note_close_causes();
	return true;
}

static bool run_server(struct sim_server *server)
{
	bool did = false, is_work;

	if (server->endpoint && !server->connecting)
		scripted_allow(server->endpoint->script, SCRIPTED_ANY);
	is_work = server->endpoint && !is_closed(server->endpoint) &&
		!server_of(endpoint_link(server->endpoint))->watches;
	did |= checked(sim_server_connected(server, 0));
	did |= checked(sim_server_work(server) || sim_server_finish(server));
	did |= checked(sim_server_deliver(server, SIZE_MAX));
	did |= checked(server->endpoint && scripted_run(server->endpoint->script));
	return did && is_work;
}

static bool end_client(struct sim_client *client, bool (*finish)(struct sim_client *client))
{
	bool did = false;

	if (client->endpoint)
		scripted_allow(client->endpoint->script, SCRIPTED_ANY);
	did |= checked(client->endpoint && finish(client));
	did |= checked(sim_client_deliver(client, SIZE_MAX));
	did |= checked(client->endpoint && scripted_run(client->endpoint->script));
	return did;
}

/*
 * Every client and server does what it can, once. Connections that watch hosts do so without end: what
 * they do does not count. Returns false when none could do anything. */
static bool run_all_once(bool (*finish)(struct sim_client *client))
{
	bool did = false;

	for (unsigned i = 0; i < SIM_SERVERS; i++)
		did |= run_server(&sim_servers[i]);
	for (unsigned i = 0; i < SIM_CLIENTS; i++)
		did |= end_client(&clients[i], finish);
	for (unsigned i = 0; i < SIM_CANCELERS; i++)
		did |= checked(canceler_delivers(&cancelers[i], SIZE_MAX));
	for (unsigned i = 0; i < fake_workers; i++)
		sim_workers_turn_of(i);
	check_everything();
	return did;
}

/* Runs until no client or server has anything to do, however long it takes. */
static void run_until_idle(bool (*finish)(struct sim_client *client))
{
	enum { QUIET_SECONDS = 15, MOST_SECONDS = 300 };
	unsigned quiet = 0, passed = 0;

	while (quiet < 4 * QUIET_SECONDS) {
		note_close_causes();
		if (run_all_once(finish)) {
			quiet = 0;
			continue;
		}
		quiet++;
		if (passed++ > 4 * MOST_SECONDS)
			fail_msg("the pools do not come to rest");
		pass(USEC_PER_SEC / 4);
		check_everything();
	}
}

static void print_client(const struct sim_client *client)
{
	print_error("client %u, %s: owed %u answers, has said %zu bytes that were not "
		    "delivered, asked %zu that were not answered%s%s%s%s%s%s\n",
		client->number,
		is_closed(client->endpoint) ? "closed"
			: fake_is_in_mail(client->endpoint)
			? "in the mail"
			: client_state_name(client_state(client_of(link_of(client)))),
		client->owed, client->out.length - client->delivered,
		client->requests.length - client->handled,
		client->logged_in ? "" : ", not welcome", client->disconnects ? ", leaves" : "",
		client->reads_little ? ", stalls" : "", client->batch ? ", in a batch" : "",
		client->awaits_copy ? ", awaits a COPY" : "", client->copies ? ", copies" : "");
}

static void print_server(const struct sim_server *server)
{
	const struct sim_postgres *pg = &server->session;
	size_t length;
	const struct server_link *link = server_of(endpoint_link(server->endpoint));

	scripted_output(server->endpoint->script, &length);
	print_error(
		"server %u, %s: has not heard %zu bytes, not delivered %zu, not read %zu%s%s%s%s%s; "
		"requests %u, status %d, dirty %d, held %u, remaining %u\n",
		server->number, server_state_name(server_state(link)),
		length - server->read_offset, sim_postgres_output(pg),
		scripted_unread(server->endpoint->script), pg->stuck ? ", stuck" : "",
		pg->copy ? ", copies" : "", pg->skipping ? ", skips" : "",
		server->has_ended ? ", gone" : "", link->link.stream.paused ? ", paused" : "",
		link->requests.count, link->transaction_status, link->dirty,
		link->link.held_length, link->link.remaining);
}

void sim_world_print(void)
{
	const struct pool *pool;

	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory) {
		print_error("pool of %s%s%s: clients", pool->user->name,
			pool->failing ? ", failing" : "", pool->welcome ? "" : ", no welcome");
		for (unsigned i = 0; i < CLIENT_STATES; i++)
			if (pool->client_count[i] > 0)
				print_error(" %u %s", pool->client_count[i],
					client_state_name((enum client_state)i));
		print_error("; servers (login, idle, active, used, tested, ...)");
		for (unsigned i = 0; i < SERVER_LISTS; i++)
			print_error(" %u", pool->server_count[i]);
		print_error("\n");
	}
	sim_moves_print();
	for (unsigned i = 0; i < SIM_CLIENTS; i++)
		if (clients[i].endpoint)
			print_client(&clients[i]);
	for (unsigned i = 0; i < SIM_SERVERS; i++)
		if (sim_servers[i].endpoint && !is_closed(sim_servers[i].endpoint))
			print_server(&sim_servers[i]);
}

static void check_all_answered(void)
{
	for (unsigned i = 0; i < SIM_CLIENTS; i++) {
		const struct sim_client *client = &clients[i];

		if (client->endpoint && !client->disconnects &&
			(!client->logged_in || client->owed > 0 || client->status != 'I'))
			fail_msg("client %u hangs: %u answers are owed, its state is %u",
				client->number, client->owed,
				link_of(client) ? link_of(client)->state : CLIENT_STATES);
	}
}

/* What came behind its login, and is handled together with the next bytes. */
static unsigned held_by_listening_servers(const struct registry *registry)
{
	const struct pool *pool;
	unsigned held = 0;

	TAILQ_FOREACH (pool, &registry->pools, in_registry)
		held += pool->hub && pool->hub->server &&
			pool->hub->server->link.held_length > 0;
	return held;
}

/* All pools are at rest: no client waits, and no server is in use. */
static void check_pools(void)
{
	const struct registry *each;
	const struct pool *pool;

	EACH_REGISTRY (each, &fake_process) {
		assert_int_equal(each->helds.used, held_by_listening_servers(each));
		assert_int_equal(each->loop->backlogs.used, 0);
	}
	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory) {
		assert_int_equal(pool->client_count[CLIENT_WAITING], 0);
		assert_int_equal(pool->client_count[CLIENT_WELCOMING], 0);
		assert_int_equal(pool->client_count[CLIENT_CANCEL_WAITING], 0);
		assert_int_equal(pool->client_count[CLIENT_CANCEL_SENT], 0);
		assert_int_equal(pool->server_count[SERVERS_TESTED], 0);
		assert_int_equal(pool->server_count[SERVERS_BEING_CANCELED], 0);
		assert_int_equal(pool->server_count[SERVERS_ACTIVE_CANCEL], 0);
		assert_int_equal(pool->server_count[SERVERS_ACTIVE], 0);
	}
}

static void check_notes(void)
{
	for (unsigned i = 0; i < SIM_CLIENTS; i++)
		if (clients[i].endpoint && !clients[i].disconnects)
			sim_notes_check(&clients[i]);
}

void sim_world_settle(void)
{
	const struct registry *each;

	sim_moves_heal();
	operator_resumes();
	sim_workers_heal();
	/* Servers that are kept are renewed without end. */
	fake_set("min_pool_size", "0");
	fake_set("server_lifetime", "3600");
	check_everything();
	run_until_idle(sim_client_finish_transaction);
	sim_moves_check_settled();
	check_notes();
	run_until_idle(sim_client_finish_listening);
	/* In session mode finished clients keep their servers while others wait. */
	if (!sim_server_one_owner) {
		check_all_answered();
		check_pools();
	}
	run_until_idle(sim_client_finish);
	check_pools();
	for (unsigned i = 0; i < SIM_CLIENTS; i++)
		if (clients[i].endpoint)
			fail_msg("client %u is still there", clients[i].number);
	EACH_REGISTRY (each, &fake_process)
		assert_int_equal(each->clients.used, 0);
	/* No address has a client, and none has failed to log in. */
	assert_null(fake_process.sources.by_address);
	sim_trace_end();
}
