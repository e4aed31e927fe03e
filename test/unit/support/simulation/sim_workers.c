/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_workers.h"

#include "model/shared/host_news.h"
#include "session/link/client_limits.h"
#include "session/serving/control.h"
#include "support/simulation/sim_random.h"
#include "support/simulation/sim_trace.h"
#include "support/simulation/sim_world.h"

/* A pool with a server that a client waits for, since this turn of its loop. */
static struct lagging {
	const struct pool *pool; /* NULL: unused */
	uint64_t since;
} lagging[4 * SIM_DATABASES_MOST];
/* What counts for one limit of servers, as of the last check. */
struct counted {
	unsigned servers;
	unsigned cancels; /* requests that need a connection, which may exceed the limit */
};
static struct counted of_databases[SIM_DATABASES_MOST], of_users[SIM_USERS], of_all;

static bool was_killed[SIM_DATABASES_MOST];
static unsigned steps;
static mail_function *news_of_host; /* by which such a mail is known */

unsigned long long sim_workers_mails;

/* --- set-up ------------------------------------------------------------------------------- */

void sim_workers_draw(char *out, size_t size)
{
	sim_databases = 3 + sim_below(SIM_DATABASES_MOST - 2);
	snprintf(out, size, "[databases]\n");
	for (unsigned i = 0; i < sim_databases; i++)
		snprintf(out + strlen(out), size - strlen(out),
			"%s = host=/tmp pool_weight=%u\n", sim_database_names[i], 1 + i % 2);
}

static void ignore_news(
	struct registry *registry, struct host *host, const struct host_news *news)
{
	(void)registry;
	(void)host;
	(void)news;
}

static void learn_mail(void)
{
	const struct host_item item = {"nowhere", 7, 1};

	host_news_send(
		&fake_registry, hosts_open(&fake_registry.hosts, &item, NULL), ignore_news);
	news_of_host = atomic_load(&fake_registry_of(1)->loop->mailbox.newest)->deliver;
	fake_deliver();
}

void sim_workers_begin(void)
{
	if (fake_process.workers > 1)
		learn_mail();
	memset(lagging, 0, sizeof(lagging));
	memset(was_killed, 0, sizeof(was_killed));
	memset(of_databases, 0, sizeof(of_databases));
	memset(of_users, 0, sizeof(of_users));
	of_all = (struct counted){0};
	steps = 0;
}

/* --- turns -------------------------------------------------------------------------------- */

void sim_workers_turn_of(unsigned worker)
{
	struct registry *registry = fake_registry_of(worker);
	const uint64_t before = registry->loop->mailbox.received;

	crew_turn(registry->loop, false);
	sim_workers_mails += registry->loop->mailbox.received - before;
}

void sim_workers_turn(void)
{
	sim_workers_turn_of(sim_below(fake_workers));
}

/* --- the operator ------------------------------------------------------------------------- */

static struct database *database_of(unsigned number)
{
	struct database *database =
		registry_find_database(&fake_registry, sim_database_names[number]);

	assert_non_null(database);
	return database;
}

/* In stillness, as worker 0 does with the commands of the console. */
static void act(unsigned number)
{
	struct database *database = database_of(number);

	switch (sim_below(4)) {
	case 0:
		sim_trace("operator", number, "pauses the database", 0, NULL);
		control_pause(&fake_registry, database);
		break;
	case 1:
		sim_trace("operator", number, "resumes the database", 0, NULL);
		control_resume(&fake_registry, database);
		break;
	case 2:
		sim_trace("operator", number, "reconnects the database", 0, NULL);
		control_reconnect(&fake_registry, database);
		break;
	default:
		sim_trace("operator", number, "kills the database", 0, NULL);
		was_killed[number] = true;
		control_kill(&fake_registry, database, sim_chance(50));
	}
}

bool sim_workers_act(void)
{
	if (fake_workers == 1)
		return false;
	process_stop_others(&fake_process);
	act(sim_below(sim_databases));
	process_let_others_run(&fake_process);
	return true;
}

void sim_workers_heal(void)
{
	process_stop_others(&fake_process);
	for (unsigned i = 0; fake_workers > 1 && i < sim_databases; i++)
		control_resume(&fake_registry, database_of(i));
	process_let_others_run(&fake_process);
}

void sim_workers_forget_kills(void)
{
	memset(was_killed, 0, sizeof(was_killed));
}

bool sim_workers_was_killed(unsigned database)
{
	return was_killed[database];
}

/* --- first come, first served ------------------------------------------------------------- */

/* A client that does not wait gets a server only if no other client of the pool waits. */
void sim_workers_check_pair(const struct client_link *client, const struct server_link *server)
{
	const struct link *first = TAILQ_FIRST(&client->link.pool->waiting);

	assert_ptr_equal(client->link.stream.loop, server->link.stream.loop);
	assert_ptr_equal(client->link.pool, server->link.pool);
	if (first && first != &client->link)
		fail_msg("client %llu gets a server before client %llu, which waits longer",
			(unsigned long long)client->link.id, (unsigned long long)first->id);
}

/* --- each thing at its place -------------------------------------------------------------- */

static void check_client(const struct client_link *client, const struct registry *registry)
{
	const struct user *user = NULL;

	if (client->database && !client->database->console)
		assert_ptr_equal(client->database->registry, registry);
	if (!client->counted_in_user)
		return;
	user = registry_find_user(registry, client->user->name);
	if (user)
		assert_ptr_equal(user, client->user);
}

static void check_link(const struct link *link, const struct registry *registry)
{
	if (link->kind == LINK_CLIENT || stream_is_open(&link->stream))
		assert_ptr_equal(link->stream.loop, registry->loop);
	if (link->pool)
		assert_ptr_equal(link->pool->registry, registry);
	if (link->peer)
		assert_ptr_equal(link->peer->pool->registry, registry);
	if (link->kind == LINK_CLIENT)
		check_client((const struct client_link *)link, registry);
}

/* Closed links are freed at the end of the turn. */
static void check_slabs(const struct registry *registry, unsigned clients, unsigned servers)
{
	if (registry->loop->ending.first)
		return;
	assert_int_equal(registry->clients.used, clients);
	assert_int_equal(registry->servers.used, servers);
}

/* Returns the number of clients. */
static unsigned check_links(const struct registry *registry, unsigned *admitted)
{
	unsigned clients = 0, servers = 0;
	const struct link *link;

	TAILQ_FOREACH (link, &registry->links, in_registry) {
		check_link(link, registry);
		if (link->kind == LINK_SERVER) {
			servers++;
			continue;
		}
		clients++;
		*admitted += ((const struct client_link *)link)->counted_in_process;
	}
	check_slabs(registry, clients, servers);
	return clients;
}

/* What has work is served by a turn of its own loop. */
static void check_work(const struct registry *registry)
{
	const struct loop_task *task = registry->loop->work.first;
	const struct pool *pool;

	if (TAILQ_EMPTY(&registry->work))
		return;
	TAILQ_FOREACH (pool, &registry->work, in_work)
		assert_ptr_equal(pool->registry, registry);
	while (task && task != &registry->work_task)
		task = task->next;
	assert_ptr_equal(task, &registry->work_task);
}

static void check_pools(const struct registry *registry)
{
	const struct database *database;
	const struct pool *pool;
	unsigned databases = 0;

	check_work(registry);
	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		assert_ptr_equal(pool->registry, registry);
		assert_ptr_equal(pool->database->registry, registry);
		assert_ptr_equal(registry_find_user(registry, pool->user->name), pool->user);
	}
	TAILQ_FOREACH (database, &registry->databases, in_registry) {
		assert_ptr_equal(database->registry, registry);
		databases += !database->console;
	}
	assert_int_equal(registry->database_count, databases);
}

static void check_deadline(const struct deadline *deadline, const struct loop *loop)
{
	const struct client_link *client = (const struct client_link *)((const char *)deadline -
		offsetof(struct client_link, deadline));
	const struct pool *pool = (const struct pool *)((const char *)deadline -
		offsetof(struct pool, reserve_due));
	const struct pool *each;

	if (deadline->expire == client_limits_expire)
		assert_ptr_equal(client->link.stream.loop, loop);
	TAILQ_FOREACH (each, &fake_process.directory.pools, in_directory) {
		if (each == pool)
			assert_ptr_equal(pool->registry->loop, loop);
	}
}

static void check_wheel(const struct loop *loop)
{
	const struct deadline *deadline;

	for (unsigned i = 0; i < WHEEL_SLOTS; i++) {
		if (!(loop->wheel.used[i / 64] & UINT64_C(1) << (i % 64)))
			continue;
		TAILQ_FOREACH (deadline, &loop->wheel.slots[i], entry)
			check_deadline(deadline, loop);
	}
	TAILQ_FOREACH (deadline, &loop->wheel.exact, entry)
		check_deadline(deadline, loop);
}

/* --- each client once --------------------------------------------------------------------- */

/* Is it a client? Else it is of a limit that workers share, or news of a host. */
static bool is_client(const struct mail *mail)
{
	const struct tally *tally = fake_process.tallies.whole;

	if (mail->deliver == news_of_host)
		return false;
	return !tally || mail->deliver != LIST_FIRST(&tally->shares)->mail.deliver;
}

static unsigned count_mail(const struct mailbox *mailbox)
{
	const struct mail *mail = mailbox->newest;
	unsigned count = 0;

	for (; mail; mail = mail->next)
		count += is_client(mail);
	for (mail = mailbox->taken; mail; mail = mail->next)
		count += is_client(mail);
	return count;
}

static void check_accepted(unsigned linked, unsigned mailed)
{
	struct endpoint *endpoint = NULL;
	unsigned open = 0, away = 0;

	while ((endpoint = fake_next_endpoint(endpoint)) != NULL) {
		if (endpoint->sender != FROM_CLIENT || is_closed(endpoint))
			continue;
		open++;
		away += fake_is_in_mail(endpoint);
	}
	assert_int_equal(away, mailed);
	assert_int_equal(open, linked + mailed);
	assert_int_equal(fake_process.limits.clients, open);
}

static unsigned clients_of(const struct database *database)
{
	const struct link *link;
	unsigned count = 0;

	TAILQ_FOREACH (link, &database->registry->links, in_registry) {
		const struct client_link *client = (const struct client_link *)link;

		count += link->kind == LINK_CLIENT && client->counted_in_database &&
			client->database == database;
	}
	return count;
}

/* --- limits ------------------------------------------------------------------------------- */

/* Servers of a database, of a user's name, or all. */
static struct counted count_servers(const struct database *database, const char *user)
{
	struct counted counted = {0};
	const struct pool *pool;

	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory) {
		if ((database && pool->database != database) ||
			(user && strcmp(pool->user->name, user) != 0))
			continue;
		counted.servers += pool_servers(pool) + pool->server_count[SERVERS_LISTENING] -
			pool->server_count[SERVERS_ACTIVE_CANCEL];
		counted.cancels +=
			pool->client_count[CLIENT_CANCEL_WAITING] + pool->cancels_due;
	}
	return counted;
}

/* Beyond the limit there are no more servers than before, but for cancel requests. */
static void check_limit(
	const char *name, struct counted *before, struct counted now, int limit, bool holds)
{
	if (limit > 0 && holds && now.servers > (unsigned)limit &&
		now.servers > before->servers && now.cancels + before->cancels == 0)
		fail_msg("%u servers, with %s = %d", now.servers, name, limit);
	*before = now;
}

static void check_limits(void)
{
	const struct settings *settings = fake_process.settings;
	const bool shares = fake_workers == 1 || SIM_SHARES_LIMITS;
	const struct database *database;

	for (unsigned i = 0; i < sim_databases; i++) {
		database = database_of(i);
		check_limit("max_db_connections", &of_databases[i],
			count_servers(database, NULL), settings->max_db_connections, true);
		assert_int_equal(database->clients, clients_of(database));
	}
	for (unsigned i = 0; i < SIM_USERS; i++)
		check_limit("max_user_connections", &of_users[i],
			count_servers(NULL, sim_users[i]), settings->max_user_connections,
			shares);
	check_limit("max_server_connections", &of_all, count_servers(NULL, NULL),
		settings->max_server_connections, shares);
	assert_true((int64_t)fake_process.limits.admitted <= settings->max_client_conn);
}

/* --- servers that clients wait for -------------------------------------------------------- */

static bool has_usable_server(const struct pool *pool)
{
	const struct link *link;

	TAILQ_FOREACH (link, &pool->servers[SERVERS_IDLE], place) {
		const struct server_link *server = (const struct server_link *)link;

		if (!server->dirty && !server->close_needed && link->held_length == 0)
			return true;
	}
	return false;
}

static bool is_lagging(const struct pool *pool)
{
	return pool->client_count[CLIENT_WAITING] > 0 && !pool_is_paused(pool) &&
		has_usable_server(pool);
}

static struct lagging *lagging_of(const struct pool *pool)
{
	struct lagging *unused = NULL;

	for (unsigned i = 0; i < COUNT(lagging); i++) {
		if (lagging[i].pool == pool)
			return &lagging[i];
		if (!lagging[i].pool)
			unused = &lagging[i];
	}
	assert_non_null(unused);
	return unused;
}

static void check_lag(const struct pool *pool)
{
	struct lagging *noted = lagging_of(pool);
	const uint64_t turn = pool->registry->loop->turn;

	if (!is_lagging(pool))
		noted->pool = NULL;
	else if (!noted->pool)
		*noted = (struct lagging){.pool = pool, .since = turn};
	else if (turn >= noted->since + 2)
		fail_msg("a client waits beside an idle server for two turns");
}

/* Pools that are gone do not lag. */
static void check_lags(void)
{
	const struct pool *pool;

	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory)
		check_lag(pool);
	for (unsigned i = 0; i < COUNT(lagging); i++) {
		TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory) {
			if (pool == lagging[i].pool)
				break;
		}
		lagging[i].pool = pool;
	}
}

/* --- after each step ---------------------------------------------------------------------- */

void sim_workers_check(void)
{
	unsigned clients = 0, mails = 0, admitted = 0;
	const struct registry *each;

	EACH_REGISTRY (each, &fake_process) {
		clients += check_links(each, &admitted);
		mails += count_mail(&each->loop->mailbox);
		check_pools(each);
		/* Not each time: there are many slots. */
		if (++steps % 16 < 4)
			check_wheel(each->loop);
	}
	check_accepted(clients, mails);
	assert_int_equal(fake_process.limits.admitted, admitted);
	check_limits();
	check_lags();
}
