/* SPDX-License-Identifier: ISC */
/* Each kind of advice by a scene: when it appears, its figures, its setting, and when it goes. */
#include <errno.h>

#include "admin/advice/advice.h"
#include "admin/advice/advisor.h"
#include "admin/advice/rules.h"
#include "base/log.h"
#include "model/pool_pins.h"
#include "model/statistics/pool_figures.h"
#include "net/tls_context.h"
#include "support/fakes/fake_pool.h"
#include "support/files/certificates.h"
#include "wire/session_topics.h"

static struct pool *pool;
static char sentence[1000];

/* Waiting is bounded by nothing, so that scenes may last; clients may have a name. */
static void start_with(const char *settings)
{
	char text[1500];

	snprintf(text, sizeof(text),
		"[databases]\ndb = host=/tmp host_cores=16\n* = host=/tmp\n[pgbouncer]\n"
		"pool_mode = transaction\nserver_reset_query =\nquery_wait_timeout = 0\n"
		"default_pool_size = 2\nmax_client_conn = 1000\nserver_idle_timeout = 0\n"
		"server_lifetime = 1000000\n%s",
		settings);
	fake_start(text);
	pool = fake_pool("db", "alice");
	assert_true(advisor_start(&fake_registry));
}

static int start(void **state)
{
	(void)state;
	start_with("");
	return 0;
}

static int stop(void **state)
{
	advisor_stop(&fake_registry);
	return fake_end(state);
}

static void pass(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		fake_advance(USEC_PER_SEC);
		handles_clear(&fake_process.handles); /* as the end of each SHOW does */
		advisor_look(&fake_registry, loop_now(&fake_loop));
	}
}

static const struct advice *find(const char *code)
{
	const struct advice *advice;

	for (unsigned i = 0; (advice = advice_nth(&fake_registry, i)) != NULL; i++) {
		if (strcmp(advice_code(advice), code) == 0)
			return advice;
	}
	return NULL;
}

static const char *text_of(const struct advice *advice, bool with_names)
{
	struct buffer out = {0};

	advice_write(advice, with_names, &out);
	assert_in_range(out.length, 20, sizeof(sentence) - 1);
	memcpy(sentence, out.data, out.length);
	sentence[out.length] = '\0';
	buffer_free(&out);
	return sentence;
}

#define assert_says(advice, part)                                                              \
	do {                                                                                   \
		const char *said = text_of(advice, true);                                      \
                                                                                               \
		if (!strstr(said, part))                                                       \
			fail_msg("'%s' is not in: %s", part, said);                            \
	} while (0)

#define assert_setting(advice, name) assert_string_equal(advice_setting(advice), name)

/* There is no advice, and there is that with this code. */
#define assert_nothing() assert_null(advice_nth(&fake_registry, 0))
#define assert_advice(code) assert_non_null(find(code))

static struct endpoint *client_of_application(const char *name)
{
	struct endpoint *client = fake_client(pool);
	const int index = parameter_index(fake_registry.parameters, "application_name");

	assert_true(link_set_parameter(endpoint_link(client), (unsigned)index, name));
	endpoint_link(client)->remote =
		(struct address){.family = AF_INET, .bytes = {192, 0, 2, 1}};
	return client;
}

/* So many clients with a query each. */
static void ask(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		send_letters(fake_client(pool), "Q");
}

/* Two servers in the pool of two, each with a client that is idle in a transaction. */
static void hold(struct endpoint *clients[2], struct endpoint *servers[2])
{
	for (unsigned i = 0; i < 2; i++) {
		servers[i] = fake_server(pool);
		clients[i] = client_of_application("batch\033<b>");
		send_letters(clients[i], "Q");
	}
	for (unsigned i = 0; i < 2; i++)
		send_letters(servers[i], "C>");
}

/* --- pools in which clients wait ---------------------------------------------------------- */

static void test_full_pool_of_a_host_with_room(void **state)
{
	const struct advice *advice;
	struct endpoint *one, *two;

	(void)state;
	one = fake_server(pool);
	two = fake_server(pool);
	ask(7);
	pass(29);
	assert_nothing();
	pass(3);
	advice = find("pool_full");
	assert_non_null(advice);
	assert_setting(advice, "pool_size");
	assert_int_equal(advice_severity(advice), ADVICE_WARNING);
	assert_string_equal(advice_database(&fake_registry, advice), "db");
	assert_string_equal(advice_user(&fake_registry, advice), "alice");
	assert_ptr_equal(advice_pool(&fake_registry, advice), pool);
	assert_int_equal(advice_pool_number(advice), pool->number);
	assert_says(advice,
		"5 clients wait for a server, the longest for 32 s, and all servers of "
		"the pool (pool_size 2) are in use: on average 2 of them run queries.");
	assert_says(advice,
		"about 2 queries run on the 16 cores of its machine, which can use 64.");
	assert_says(advice, "Raise pool_size from 2 to 4.");
	assert_null(advice_nth(&fake_registry, 1));
	assert_in_range(
		advice_age(advice, loop_now(&fake_loop)), 30 * USEC_PER_SEC, 33 * USEC_PER_SEC);
	/* All are served: it is gone after a while. */
	for (unsigned i = 0; i < 7; i++) {
		if (endpoint_link(one)->peer)
			send_letters(one, "CZ");
		if (endpoint_link(two)->peer)
			send_letters(two, "CZ");
	}
	pass(8);
	assert_advice("pool_full");
	pass(4);
	assert_nothing();
}

static void test_larger_size_is_bounded_by_the_cores(void **state)
{
	(void)state;
	advisor_stop(&fake_registry);
	fake_end(state);
	fake_start("[databases]\ndb = host=/tmp host_cores=1\n[pgbouncer]\n"
		   "pool_mode = transaction\nquery_wait_timeout = 0\ndefault_pool_size = 3\n");
	pool = fake_pool("db", "alice");
	assert_true(advisor_start(&fake_registry));
	for (unsigned i = 0; i < 3; i++)
		fake_server(pool);
	ask(8);
	pass(32);
	assert_says(find("pool_full"), "Raise pool_size from 3 to 4.");
}

/* The limit that keeps the pool small is the one to raise, less what other pools have of it. */
static void test_full_pool_below_a_limit_that_other_pools_share(void **state)
{
	const struct advice *advice;
	struct pool *other;

	(void)state;
	fake_set("max_db_connections", "5");
	pool_reconfigure(pool);
	other = fake_pool("db", "bob");
	pool_reconfigure(other);
	fake_server(other);
	fake_server(other);
	for (unsigned i = 0; i < 2; i++)
		fake_server(pool);
	ask(8);
	pass(32);
	assert_setting(find("pool_full"), "pool_size");
	assert_says(find("pool_full"), "Raise pool_size from 2 to 3.");
	fake_server(other);
	pass(1);
	advice = find("pool_full");
	assert_setting(advice, "max_db_connections");
	assert_says(advice,
		"Raise max_db_connections, which allows 5 servers, together with pool_size.");
}

static void test_full_pool_of_a_host_without_more_connections(void **state)
{
	const struct host_item item = {"/tmp", 4, 5432};
	struct host *host = hosts_open(&fake_registry.hosts, &item, NULL);

	(void)state;
	host->capacity.max_connections = 5;
	host->capacity.reserved = 3;
	for (unsigned i = 0; i < 2; i++)
		host_use(endpoint_server(fake_server(pool)), host);
	ask(8);
	pass(32);
	assert_advice("pool_full");
	assert_null(advice_setting(find("pool_full")));
	assert_says(find("pool_full"),
		"max_connections of PostgreSQL (5) has no more for this pool: raise it there");
}

static void test_pool_of_a_host_that_is_busy(void **state)
{
	const struct advice *advice;

	(void)state;
	advisor_stop(&fake_registry);
	fake_end(state);
	fake_start("[databases]\ndb = host=/tmp host_cores=1\n[pgbouncer]\n"
		   "pool_mode = transaction\nquery_wait_timeout = 0\ndefault_pool_size = 4\n");
	pool = fake_pool("db", "alice");
	assert_true(advisor_start(&fake_registry));
	for (unsigned i = 0; i < 4; i++)
		fake_server(pool);
	pool_open_latency(pool);
	for (unsigned i = 0; i < 100; i++)
		latency_add(pool->latency, LATENCY_QUERY, 12000000);
	ask(7);
	pass(32);
	advice = find("pool_busy");
	assert_non_null(advice);
	assert_null(advice_setting(advice));
	assert_says(advice, "about 4 queries run on the 1 core of");
	assert_says(advice, "half of them take more than 1");
	assert_null(find("pool_full"));
}

static void test_pool_of_a_host_of_unknown_cores_is_told_so(void **state)
{
	const struct advice *advice;

	(void)state;
	pool = fake_pool("other", "alice");
	for (unsigned i = 0; i < 2; i++)
		endpoint_link(fake_server(pool))->remote.family = AF_INET; /* elsewhere */
	ask(4);
	pass(32);
	advice = find("pool_full");
	assert_non_null(advice);
	assert_says(advice, "How many cores PostgreSQL has is not known (host_cores)");
	assert_says(advice, "Raise pool_size from 2 to 4.");
}

static void test_pool_held_by_idle_transactions(void **state)
{
	struct endpoint *clients[2], *servers[2];
	const struct advice *advice;

	(void)state;
	hold(clients, servers);
	ask(3);
	pass(32);
	advice = advice_nth(&fake_registry, 0);
	assert_string_equal(advice_code(advice), "pool_held");
	assert_setting(advice, "idle_transaction_timeout");
	assert_int_equal(advice_severity(advice), ADVICE_CRITICAL);
	assert_says(advice, "3 clients wait");
	assert_says(advice,
		"on average 2 of them are idle in a transaction, one by application "
		"'batch\\x1b<b>' (");
	assert_says(advice, ") for 32 s, so that a larger pool would be held as well");
	assert_says(advice, "idle_transaction_timeout (now 0: none)");
	/* Without names it has neither the application nor the address. */
	text_of(advice, false);
	assert_null(strstr(sentence, "batch"));
	assert_null(strstr(sentence, "192."));
	assert_non_null(strstr(sentence, "one for 32 s"));
	/* No walk over clients, and none over servers of a pool that does not wait. */
	send_letters(clients[0], "Q");
	send_letters(servers[0], "CZ");
}

/* Advice that is shown keeps its kind while two fifths of the servers are idle, and for ten samples. */
static void test_held_pool_does_not_become_full_with_each_sample(void **state)
{
	struct endpoint *clients[5], *servers[5];

	(void)state;
	fake_set("default_pool_size", "5");
	pool_reconfigure(pool);
	for (unsigned i = 0; i < 5; i++) {
		servers[i] = fake_server(pool);
		clients[i] = fake_client(pool);
		send_letters(clients[i], "Q");
	}
	for (unsigned i = 0; i < 5; i++)
		send_letters(servers[i], "C>");
	ask(3);
	pass(32);
	assert_advice("pool_held");
	for (unsigned i = 0; i < 3; i++)
		send_letters(clients[i], "Q");
	pass(100);
	assert_advice("pool_held");
	send_letters(clients[3], "Q");
	pass(9);
	assert_advice("pool_held");
	pass(4);
	assert_null(find("pool_held"));
	assert_advice("pool_full");
	send_letters(servers[0], "C>");
	pass(60);
	assert_null(find("pool_held"));
}

static void test_session_pool_with_idle_clients(void **state)
{
	struct endpoint *clients[2], *servers[2];
	const struct advice *advice;

	(void)state;
	fake_set("pool_mode", "session");
	pool_reconfigure(pool);
	for (unsigned i = 0; i < 2; i++) {
		servers[i] = fake_server(pool);
		clients[i] = fake_client(pool);
		send_letters(clients[i], "Q");
		send_letters(servers[i], "CZ");
	}
	ask(2);
	pass(32);
	advice = find("pool_session");
	assert_non_null(advice);
	assert_setting(advice, "pool_mode");
	assert_says(advice,
		"on average 2 of them are idle, and kept by clients that stay connected");
}

static void test_pinned_servers(void **state)
{
	struct endpoint *clients[2], *servers[2];
	const struct advice *advice;

	(void)state;
	hold(clients, servers);
	for (unsigned i = 0; i < 2; i++) {
		send_letters(clients[i], "Q");
		endpoint_server(servers[i])->pins = TOPIC_TEMPORARY;
		pool_pin(pool);
	}
	for (unsigned i = 0; i < TOPIC_BITS; i++)
		pool->pins[i] = TOPIC_TEMPORARY == 1u << i ? 5 : 1;
	pass(62);
	advice = find("session_pins");
	assert_non_null(advice);
	assert_setting(advice, "pin_causes");
	assert_int_equal(advice_severity(advice), ADVICE_INFO);
	assert_says(advice, "2 of 2 servers of the pool stay with one client each");
	assert_says(advice, "most often for: temporary object");
	assert_says(advice, "max_pinned allows no more");
	for (unsigned i = 0; i < 2; i++) {
		endpoint_server(servers[i])->pins = 0;
		pool_unpin(pool);
	}
	pass(31);
	assert_null(find("session_pins"));
}

static void test_pinned_servers_of_a_pool_with_waiting_clients(void **state)
{
	const struct advice *advice;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct endpoint *server = fake_server(pool);

		send_letters(fake_client(pool), "Q");
		endpoint_server(server)->pins = TOPIC_LOCKS;
		pool_pin(pool);
		send_letters(server, "CZ");
	}
	for (unsigned i = 0; i < TOPIC_BITS; i++)
		pool->pins[i] = TOPIC_LOCKS == 1u << i ? 5 : 1;
	ask(2);
	pass(32);
	advice = find("pool_pinned");
	assert_non_null(advice);
	assert_setting(advice, "pin_causes");
	assert_says(advice,
		"on average 2 of them are idle, and pinned to their clients, most often "
		"for: advisory lock.");
}

static void test_full_pool_that_computes_its_size(void **state)
{
	(void)state;
	fake_set("default_pool_size", "auto");
	fake_set("auto_pool_max", "4");
	pool_reconfigure(pool);
	pool->auto_size = 4;
	for (unsigned i = 0; i < 4; i++)
		fake_server(pool);
	ask(5);
	pass(32);
	assert_setting(find("pool_full"), "auto_pool_max");
	assert_says(find("pool_full"), "(pool_size = auto: 4)");
	assert_says(find("pool_full"), "SHOW SIZING");
}

static void test_reserve_that_is_in_use_all_the_time(void **state)
{
	const struct advice *advice;

	(void)state;
	fake_set("reserve_pool_size", "3");
	for (unsigned i = 0; i < 4; i++)
		fake_server(pool);
	ask(4);
	pass(58);
	assert_nothing();
	pass(4);
	advice = find("reserve_in_use");
	assert_non_null(advice);
	assert_setting(advice, "pool_size");
	assert_says(advice, "2 of the 3 servers");
	assert_says(advice, "Raise pool_size from 2 to 4.");
}

static void test_reserve_of_a_pool_that_computes_its_size(void **state)
{
	(void)state;
	fake_set("default_pool_size", "auto");
	fake_set("reserve_pool_size", "3");
	pool_reconfigure(pool);
	pool->auto_size = 2;
	for (unsigned i = 0; i < 4; i++)
		fake_server(pool);
	ask(4);
	pass(62);
	assert_setting(find("reserve_in_use"), "auto_pool_max");
	assert_says(find("reserve_in_use"),
		"Raise auto_pool_max; SHOW SIZING tells how the size 2 was found.");
}

static void test_paused_pool_with_waiting_clients(void **state)
{
	const struct advice *advice;

	(void)state;
	fake_server(pool);
	pool->database->paused = true;
	pool->database->paused_at = loop_now(&fake_loop);
	pass(70);
	assert_nothing();
	ask(1);
	assert_int_equal(pool->client_count[CLIENT_WAITING], 1);
	pass(62);
	advice = find("pool_paused");
	assert_non_null(advice);
	assert_null(advice_setting(advice));
	assert_says(advice, "1 client waits because of a PAUSE of the database 2 minutes ago");
	assert_null(find("pool_full"));
	pool->database->paused = false;
}

/* --- transactions ------------------------------------------------------------------------- */

static void test_idle_transaction(void **state)
{
	struct endpoint *clients[2], *servers[2];
	const struct advice *advice;

	(void)state;
	fake_set("idle_transaction_timeout", "900");
	hold(clients, servers);
	pass(58);
	assert_nothing();
	pass(4);
	advice = find("idle_transaction");
	assert_non_null(advice);
	assert_setting(advice, "idle_transaction_timeout");
	assert_int_equal(advice_severity(advice), ADVICE_WARNING);
	pass(11 * 60);
	advice = find("idle_transaction");
	assert_says(advice,
		"A transaction by application 'batch\\x1b<b>' (192.0.2.1) has been open "
		"for 12 minutes, and idle for 12 minutes; 1 more in this pool are like "
		"it");
	assert_says(advice, "idle_transaction_timeout (now 15 minutes)");
	text_of(advice, false);
	assert_non_null(strstr(sentence, "A transaction has been open for 12 minutes"));
	/* With clients that wait it is urgent. */
	ask(1);
	pass(1);
	assert_int_equal(advice_severity(find("idle_transaction")), ADVICE_CRITICAL);
	for (unsigned i = 0; i < 2; i++) {
		send_letters(clients[i], "Q");
		send_letters(servers[i], "CZ");
	}
	pass(4);
	assert_null(find("idle_transaction"));
}

static void test_short_transactions_of_a_long_queue_are_not_old(void **state)
{
	struct endpoint *server = fake_server(pool);
	struct endpoint *client = fake_client(pool);

	(void)state;
	for (unsigned i = 0; i < 400; i++) {
		send_letters(client, "Q");
		pass(1);
		send_letters(server, "CZ");
	}
	assert_nothing();
}

static void test_idle_transaction_behind_an_idle_session(void **state)
{
	struct endpoint *idle, *first, *second;

	(void)state;
	fake_set("pool_mode", "session");
	pool_reconfigure(pool);
	first = fake_server(pool);
	idle = fake_client(pool);
	send_letters(idle, "Q");
	send_letters(first, "CZ");
	second = fake_server(pool);
	ask(1);
	send_letters(second, "C>");
	pass(62);
	assert_advice("idle_transaction");
	/* The client that has had its server longest begins a transaction now. */
	send_letters(idle, "Q");
	send_letters(first, "C>");
	pass(5);
	assert_advice("idle_transaction");
}

static void test_long_transaction(void **state)
{
	struct endpoint *server = fake_server(pool);
	struct endpoint *client = client_of_application("report");
	const struct advice *advice;

	(void)state;
	send_letters(client, "Q");
	pass(299);
	assert_nothing();
	pass(3);
	advice = find("long_transaction");
	assert_non_null(advice);
	assert_setting(advice, "transaction_timeout");
	assert_int_equal(advice_severity(advice), ADVICE_INFO);
	assert_says(advice, "by application 'report'");
	assert_says(advice, "open for 5 minutes, and runs queries");
	send_letters(server, "CZ");
	pass(4);
	assert_nothing();
}

/* --- limits of servers -------------------------------------------------------------------- */

static void assert_limit(
	const char *setting, const char *code, const char *database, const char *user)
{
	struct pool *other = fake_pool("other", "alice");
	const struct advice *advice;
	struct endpoint *client;

	fake_set(setting, "1");
	pool_reconfigure(pool);
	pool_reconfigure(other);
	fake_server(pool);
	ask(1);
	client = fake_client(strcmp(code, "database_limit") == 0 ? pool : other);
	send_letters(client, "Q");
	pass(12);
	advice = find(code);
	assert_non_null(advice);
	assert_setting(advice, setting);
	if (database)
		assert_string_equal(advice_database(&fake_registry, advice), database);
	else
		assert_null(advice_database(&fake_registry, advice));
	if (user)
		assert_string_equal(advice_user(&fake_registry, advice), user);
	else
		assert_null(advice_user(&fake_registry, advice));
	assert_says(advice, "1 of the 1 connections that ");
	assert_says(advice,
		"and 1 client waits for one in 1 of the pools below it, the longest for 12 s");
	assert_says(advice, setting);
}

static void test_max_user_connections(void **state)
{
	(void)state;
	assert_limit("max_user_connections", "user_limit", NULL, "alice");
}

static void test_max_db_connections(void **state)
{
	(void)state;
	assert_limit("max_db_connections", "database_limit", "db", NULL);
}

static void test_max_server_connections(void **state)
{
	(void)state;
	assert_limit("max_server_connections", "server_limit", NULL, NULL);
}

/* --- limits of clients -------------------------------------------------------------------- */

static void test_max_client_conn(void **state)
{
	const struct advice *advice;
	struct endpoint *clients[10];

	(void)state;
	fake_set("max_client_conn", "10");
	for (unsigned i = 0; i < 8; i++)
		clients[i] = fake_client(pool);
	pass(12);
	assert_nothing();
	clients[8] = fake_client(pool);
	pass(12);
	advice = find("client_limit");
	assert_non_null(advice);
	assert_setting(advice, "max_client_conn");
	assert_int_equal(advice_severity(advice), ADVICE_WARNING);
	assert_says(advice,
		"9 of 10 clients are connected, and new ones are refused when all are. "
		"Raise max_client_conn, to 20 for example");
	clients[9] = fake_client(pool);
	pass(1);
	assert_int_equal(advice_severity(find("client_limit")), ADVICE_CRITICAL);
	assert_says(
		find("client_limit"), "10 of 10 clients are connected: new ones are refused.");
	disconnect(clients[9]);
	disconnect(clients[8]);
	pass(12);
	assert_nothing();
}

static void test_refused_clients(void **state)
{
	const struct advice *advice;

	(void)state;
	fake_registry.counters.client_rejected[CLIENT_REJECTED_USER_LIMIT] = 1000;
	pass(2);
	assert_nothing();
	fake_registry.counters.client_rejected[CLIENT_REJECTED_USER_LIMIT] += 37;
	fake_registry.counters.client_rejected[CLIENT_REJECTED_DB_LIMIT] += 3;
	pass(2);
	advice = find("clients_refused");
	assert_non_null(advice);
	assert_setting(advice, "max_user_client_connections");
	assert_says(advice, "37 logins in the last ");
	pass(65);
	assert_nothing();
}

static void test_failed_authentication(void **state)
{
	(void)state;
	pass(2);
	fake_registry.counters.auth_failed[AUTH_FAILED_PASSWORD] += 20;
	pass(8);
	assert_nothing();
	fake_registry.counters.auth_failed[AUTH_FAILED_NO_USER] += 20;
	pass(8);
	assert_advice("auth_failures");
	assert_says(find("auth_failures"), "40 logins of clients in the last ");
	pass(65);
	assert_nothing();
}

static void test_max_client_conn_above_the_descriptor_limit(void **state)
{
	const struct advice *advice;
	unsigned most;

	(void)state;
	fake_process.descriptors.others = 20;
	descriptors_review(&fake_registry, 1024);
	most = descriptors_clients_most(&fake_process);
	assert_in_range(most, 500, 999);
	pass(3);
	advice = find("descriptor_limit");
	assert_non_null(advice);
	assert_setting(advice, "max_client_conn");
	assert_says(advice, "max_client_conn is 1000, but with the limit of 1024 open files");
	/* What it says is what is admitted. */
	fake_process.limits.admitted = most - 1;
	assert_true(descriptors_allow_client(&fake_process, false));
	fake_process.limits.admitted = most;
	assert_false(descriptors_allow_client(&fake_process, false));
	fake_process.limits.admitted = 0;
	descriptors_review(&fake_registry, 4096);
	pass(3);
	assert_nothing();
}

/* --- databases ---------------------------------------------------------------------------- */

static void test_statements_that_are_evicted_all_the_time(void **state)
{
	struct prepared_counts *counts = &pool->database->prepared;
	const struct advice *advice;

	(void)state;
	counts->evictions = 1000000; /* before */
	for (unsigned i = 0; i < 45; i++) {
		counts->evictions += 12;
		counts->hits += 60;
		counts->misses += 20;
		pass(1);
	}
	advice = find("prepared_evictions");
	assert_non_null(advice);
	assert_setting(advice, "max_prepared_statements");
	assert_string_equal(advice_database(&fake_registry, advice), "db");
	assert_null(advice_user(&fake_registry, advice));
	assert_says(
		advice, "Servers give up 12 prepared statements a second for others, and 25 %");
	assert_says(advice, "Raise max_prepared_statements from 200 to 400");
	pass(90);
	assert_nothing();
}

/* What clients have names for is counted; what only servers know is not. */
static void test_room_for_the_statements_that_clients_use(void **state)
{
	struct statement *statements[24];
	const struct advice *advice;

	(void)state;
	fake_set("max_prepared_statements", "8");
	for (unsigned i = 0; i < COUNT(statements); i++) {
		const char content[] = {(char)('a' + i), '\0', '\0', '\0'};

		statements[i] =
			statement_open(&fake_registry.statements, content, sizeof(content));
		assert_non_null(statements[i]);
		statements[i]->names = i > 0;
	}
	for (unsigned i = 0; i < 45; i++) {
		pool->database->prepared.evictions += 12;
		pool->database->prepared.misses += 20;
		pass(1);
	}
	advice = find("prepared_evictions");
	assert_non_null(advice);
	assert_says(advice, "Clients use 23 different statements in all databases.");
	assert_says(advice, "Raise max_prepared_statements from 8 to 30");
	for (unsigned i = 0; i < COUNT(statements); i++) {
		statements[i]->names = 0;
		statement_unref(statements[i]);
	}
}

static void churn(unsigned seconds, enum server_closing cause)
{
	struct database_counters *counters = counters_open(pool->database);

	for (unsigned i = 0; i < seconds; i++) {
		counters->server_opened += 5;
		counters->server_closed[cause] += 5;
		pass(1);
	}
}

static void test_many_logins_at_the_server(void **state)
{
	const struct advice *advice;

	(void)state;
	churn(50, SERVER_CLOSED_LIFETIME);
	advice = find("login_churn");
	assert_non_null(advice);
	assert_setting(advice, "server_lifetime");
	assert_says(advice,
		"5 connections a second are made to PostgreSQL, and as many closed, 100 %");
	assert_says(advice, "because of: lifetime");
	churn(90, SERVER_CLOSED_IDLE);
	assert_setting(find("login_churn"), "server_idle_timeout");
	churn(90, SERVER_CLOSED_UNCLEAN);
	assert_null(advice_setting(find("login_churn")));
}

static void test_slow_login(void **state)
{
	const struct advice *advice;

	(void)state;
	pool->login_at = loop_now(&fake_loop);
	pool->login_time = 2300 * USEC_PER_MSEC;
	pass(4);
	advice = find("slow_logins");
	assert_non_null(advice);
	assert_setting(advice, "min_pool_size");
	assert_says(advice, "The last login at PostgreSQL took 2.3 s");
	pool->login_time = 20 * USEC_PER_MSEC;
	pass(11);
	assert_nothing();
}

static void fail_login(const char *sqlstate, const char *text)
{
	pool->failing = pool->refused = true;
	pool->last_failure = failure_from_server(text, sqlstate);
}

static void test_logins_that_fail(void **state)
{
	const struct advice *advice;

	(void)state;
	fail_login("28P01", "password authentication failed for user \"alice\"");
	pass(5);
	advice = find("login_failing");
	assert_non_null(advice);
	assert_setting(advice, "auth_file");
	assert_int_equal(advice_severity(advice), ADVICE_CRITICAL);
	assert_says(advice,
		"No login at PostgreSQL succeeds (SQLSTATE 28P01): password "
		"authentication failed for user \"alice\"; 0 servers are connected");
	text_of(advice, false);
	assert_null(strstr(sentence, "alice"));
	assert_non_null(strstr(sentence, "28P01"));
	pool->refused = false;
	pass(1);
	assert_setting(find("login_failing"), "host");
	assert_null(strstr(text_of(find("login_failing"), true), "SQLSTATE")); /* ours */
	fail_login("53300", "sorry, too many clients already");
	pass(5);
	advice = find("server_full");
	assert_non_null(advice);
	assert_setting(advice, "max_server_connections");
	assert_null(find("login_failing"));
	pool->failing = false;
	pass(11);
	assert_nothing();
}

/* --- hosts -------------------------------------------------------------------------------- */

static struct host *open_host(const char *name)
{
	const struct host_item item = {name, strlen(name), 5432};

	return hosts_open(&fake_registry.hosts, &item, NULL);
}

static void test_host_that_is_down(void **state)
{
	struct host *host = open_host("db1.example");
	const struct advice *advice;

	(void)state;
	host_failed(host, "connection refused", loop_now(&fake_loop), &fake_loop.random);
	pass(5);
	advice = find("host_down");
	assert_non_null(advice);
	assert_says(advice, "Host db1.example:5432 has not answered for 5.0 s, 1 attempts");
	text_of(advice, false);
	assert_null(strstr(sentence, "db1"));
	host_answered(host, 1000);
	pass(3);
	assert_nothing();
}

static struct host *open_standby(uint64_t behind, usec_t age)
{
	struct host *host = open_host("/tmp");

	host->role = HOST_ROLE_STANDBY;
	host->progress = (struct host_progress){.known = true,
		.behind = behind,
		.replay_age = age,
		.told_at = loop_now(&fake_loop)};
	return host;
}

static void test_standby_that_lags(void **state)
{
	struct host *host = open_standby(5 << 20, 40 * USEC_PER_SEC);
	const struct advice *advice;

	(void)state;
	pass(12);
	assert_nothing();
	fake_set("max_standby_lag", "1MB");
	pass(12);
	advice = find("standby_lag");
	assert_non_null(advice);
	assert_setting(advice, "max_standby_lag");
	assert_says(advice,
		"Standby /tmp:5432 is 5120 kB behind, and its last replayed transaction "
		"is 40 s old, more than max_standby_lag (1024 kB)");
	text_of(advice, false);
	assert_non_null(strstr(sentence, "A standby is 5120 kB behind"));
	fake_set("max_standby_lag", "30s");
	pass(1);
	assert_says(find("standby_lag"), "more than max_standby_lag (30 s)");
	fake_set("max_standby_lag", "0");
	host->progress.behind = UINT64_C(100) << 20;
	pass(1);
	assert_says(find("standby_lag"),
		"Clients that read there see old rows: set max_standby_lag");
	/* What was told long ago does not count. */
	pass(70);
	assert_nothing();
}

/* --- the process -------------------------------------------------------------------------- */

/* A context that has no more than a certificate, which ends in so many seconds. */
static struct tls_context context_ending(long long seconds)
{
	const struct certificate_wish wish = {.common_name = "pgusher"};
	struct certificate certificate = certificate_make(&wish);
	struct tls_context context = {.ssl = SSL_CTX_new(TLS_method())};

	assert_non_null(X509_gmtime_adj(X509_getm_notAfter(certificate.x509), seconds));
	assert_int_equal(SSL_CTX_use_certificate(context.ssl, certificate.x509), 1);
	certificate_free(&certificate);
	return context;
}

static void test_certificate_that_ends(void **state)
{
	static const struct {
		long long seconds;
		const char *said; /* NULL: nothing */
		enum advice_severity severity;
	} cases[] = {
		{15 * 86400, NULL, ADVICE_INFO},
		{13 * 86400 + 60, " ends in 13 days: ", ADVICE_WARNING},
		{9 * 86400 + 3600,
			"The certificate towards servers (/etc/s.crt) ends in 9 days: ",
			ADVICE_WARNING},
		{5 * 3600 + 60, " ends in 5 hours: ", ADVICE_CRITICAL},
		{-3 * 3600 - 60, " ended 3 hours ago: ", ADVICE_CRITICAL},
	};

	(void)state;
	fake_set("server_tls_cert_file", "/etc/s.crt");
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct tls_context context = context_ending(cases[i].seconds);
		const struct advice *advice;

		fake_process.server_tls = &context;
		pass(4);
		fake_process.server_tls = NULL;
		SSL_CTX_free(context.ssl);
		advice = find("certificate_ends");
		assert_int_equal(advice != NULL, cases[i].said != NULL);
		if (!advice)
			continue;
		assert_says(advice, cases[i].said);
		assert_int_equal(advice_severity(advice), cases[i].severity);
		assert_setting(advice, "server_tls_cert_file");
		assert_null(strstr(text_of(advice, false), "/etc"));
	}
	pass(4);
	assert_nothing();
}

static void test_process_that_is_busy(void **state)
{
	(void)state;
	fake_registry.advisor->cores = 4;
	for (unsigned i = 0; i < 40; i++) {
		fake_registry.advisor->busy[0] = loop_busy() - 95 * USEC_PER_SEC / 100;
		pass(1);
	}
	assert_advice("process_busy");
	assert_setting(find("process_busy"), "workers");
	assert_int_equal(advisor_busy(&fake_registry, 0) / 10, 9);
	assert_says(find("process_busy"), "pgusher itself uses 9");
	assert_says(
		find("process_busy"), "Raise workers from 1 to 2, for example, or run several");
	/* Most queries are of one database. */
	pool->stats.current.queries += 1000;
	fake_registry.advisor->busy[0] = loop_busy() - 95 * USEC_PER_SEC / 100;
	pass(1);
	assert_says(find("process_busy"),
		"divide the clients of database db, with 100 % of the queries, among");
	assert_null(strstr(text_of(find("process_busy"), false), "database db"));
	/* More workers than processors are of no use. */
	fake_registry.advisor->cores = 1;
	fake_registry.advisor->busy[0] = loop_busy() - 95 * USEC_PER_SEC / 100;
	pass(1);
	assert_says(find("process_busy"), "not for PostgreSQL. Run several processes");
	for (unsigned i = 0; i < 20; i++) {
		fake_registry.advisor->busy[0] = loop_busy() - 80 * USEC_PER_SEC / 100;
		pass(1);
	}
	assert_nothing();
}

/* A second in which this worker was busy, and the other one was not. */
static const struct advice *busy_worker(unsigned number)
{
	fake_registry.advisor->busy[0] = fake_registry.advisor->busy[1] = loop_busy();
	fake_registry.advisor->busy[number] -= 95 * USEC_PER_SEC / 100;
	pass(1);
	return find("process_busy");
}

static void test_worker_that_is_busy(void **state)
{
	struct registry second = {.process = &fake_process, .loop = &fake_loop, .number = 1};

	(void)state;
	TAILQ_INIT(&second.databases);
	TAILQ_INIT(&second.pools);
	TAILQ_INIT(&second.hosts);
	fake_process.registries[1] = &second;
	fake_process.workers = 2;
	fake_registry.advisor->cores = 3;
	for (unsigned i = 0; i < 40; i++)
		(void)busy_worker(1);
	assert_says(find("process_busy"), "Worker 1 of 2 uses 9");
	assert_says(
		busy_worker(1), "PostgreSQL. Raise workers from 2 to 3, for example, or run");
	second.database_count = 2;
	assert_says(busy_worker(1), " to 3, for example, or give one of its databases another");
	fake_registry.advisor->cores = 2;
	assert_says(busy_worker(1),
		"PostgreSQL. Give one of its databases another worker (worker)");
	/* Another home does not help this one, nor do more workers. */
	pool->stats.current.queries += 1000;
	for (unsigned i = 0; i < 40; i++)
		(void)busy_worker(0);
	assert_says(busy_worker(0),
		"PostgreSQL. Divide the clients of database db, with 100 % of the queries, among");
	fake_process.workers = 1;
}

static void test_log_lines_that_are_lost(void **state)
{
	(void)state;
	pass(2);
	assert_true(log_configure(&(struct log_options){.file = "/dev/full"}));
	log_write(LEVEL_LOG, "to nowhere");
	pass(2);
	assert_true(log_configure(&(struct log_options){.to_stderr = false}));
	assert_advice("log_lost");
	assert_setting(find("log_lost"), "logfile");
	assert_says(find("log_lost"), " log lines were lost in the last ");
	pass(65);
	assert_nothing();
}

static void test_nothing_is_wrong_at_rest(void **state)
{
	struct endpoint *server = fake_server(pool);
	struct endpoint *client = fake_client(pool);

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		send_letters(client, "Q");
		send_letters(server, "CZ");
		pass(1);
	}
	assert_nothing();
}

static void test_no_advice_without_an_advisor(void **state)
{
	(void)state;
	advisor_stop(&fake_registry);
	advisor_look(&fake_registry, loop_now(&fake_loop));
	assert_nothing();
	assert_true(advisor_start(&fake_registry));
}

static void test_pool_that_is_dropped_meanwhile(void **state)
{
	const struct advice *advice;

	(void)state;
	pool->login_at = loop_now(&fake_loop);
	pool->login_time = 2300 * USEC_PER_MSEC;
	pass(4);
	advice = find("slow_logins");
	registry_drop_pool(pool);
	assert_null(advice_pool(&fake_registry, advice));
	assert_string_equal(advice_database(&fake_registry, advice), "db");
	assert_string_equal(advice_user(&fake_registry, advice), "alice");
	assert_says(advice, "The last login");
	pass(12);
	assert_nothing();
}

static void test_samples_are_a_second_apart(void **state)
{
	usec_t last;

	(void)state;
	pass(1);
	last = fake_registry.advisor->looked_at;
	fake_advance(USEC_PER_SEC / 3);
	advisor_look(&fake_registry, loop_now(&fake_loop));
	assert_int_equal(fake_registry.advisor->looked_at, last);
	fake_advance(USEC_PER_SEC);
	advisor_look(&fake_registry, loop_now(&fake_loop));
	assert_true(fake_registry.advisor->looked_at > last);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(full_pool_of_a_host_with_room),
		TEST(larger_size_is_bounded_by_the_cores),
		TEST(full_pool_below_a_limit_that_other_pools_share),
		TEST(full_pool_of_a_host_without_more_connections),
		TEST(pool_of_a_host_that_is_busy),
		TEST(pool_of_a_host_of_unknown_cores_is_told_so),
		TEST(pool_held_by_idle_transactions),
		TEST(held_pool_does_not_become_full_with_each_sample),
		TEST(session_pool_with_idle_clients),
		TEST(pinned_servers),
		TEST(pinned_servers_of_a_pool_with_waiting_clients),
		TEST(full_pool_that_computes_its_size),
		TEST(reserve_that_is_in_use_all_the_time),
		TEST(reserve_of_a_pool_that_computes_its_size),
		TEST(paused_pool_with_waiting_clients),
		TEST(idle_transaction),
		TEST(short_transactions_of_a_long_queue_are_not_old),
		TEST(idle_transaction_behind_an_idle_session),
		TEST(long_transaction),
		TEST(max_user_connections),
		TEST(max_db_connections),
		TEST(max_server_connections),
		TEST(max_client_conn),
		TEST(refused_clients),
		TEST(failed_authentication),
		TEST(max_client_conn_above_the_descriptor_limit),
		TEST(statements_that_are_evicted_all_the_time),
		TEST(room_for_the_statements_that_clients_use),
		TEST(many_logins_at_the_server),
		TEST(slow_login),
		TEST(logins_that_fail),
		TEST(host_that_is_down),
		TEST(standby_that_lags),
		TEST(certificate_that_ends),
		TEST(process_that_is_busy),
		TEST(worker_that_is_busy),
		TEST(log_lines_that_are_lost),
		TEST(nothing_is_wrong_at_rest),
		TEST(no_advice_without_an_advisor),
		TEST(pool_that_is_dropped_meanwhile),
		TEST(samples_are_a_second_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
