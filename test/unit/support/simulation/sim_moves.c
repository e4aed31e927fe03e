/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_moves.h"

#include "support/simulation/sim_hosts.h"
#include "support/simulation/sim_oracle.h"
#include "support/simulation/sim_random.h"
#include "support/simulation/sim_trace.h"
#include "support/simulation/sim_world.h"

static const struct server_link
	*tries[SIM_HOSTS]; /* the login that tries a dead host; or NULL */
static struct sim_host
	*paired_at[SIM_CLIENTS]; /* before the step; NULL: the client is not paired */
static bool was_limited; /* the pooler may have no room to watch hosts */

unsigned long long sim_moves_count, sim_moves_pairs;

void sim_moves_begin(void)
{
	memset(tries, 0, sizeof(tries));
	memset(paired_at, 0, sizeof(paired_at));
	was_limited = false;
}

/* What the pooler knows of the host. NULL: nothing yet. */
static const struct host *host_of(const struct sim_host *host)
{
	const struct host *each;

	TAILQ_FOREACH (each, &fake_registry.hosts, in_hosts) {
		if (strcmp(each->name, host->name) == 0 && each->port == host->port)
			return each;
	}
	return NULL;
}

static struct sim_host *sim_host_of(const struct host *host)
{
	for (unsigned i = 0; i < sim_hosts_count && i < SIM_HOSTS; i++)
		if (strcmp(sim_hosts[i].name, host->name) == 0 &&
			sim_hosts[i].port == host->port)
			return &sim_hosts[i];
	fail_msg("unknown host %s", host->name);
	return NULL;
}

static unsigned place_of(const struct sim_host *host)
{
	return (unsigned)(host - sim_hosts);
}

/* --- events ------------------------------------------------------------------------------- */

static void trace(const struct sim_host *host, const char *action, long amount)
{
	sim_trace("host", place_of(host), action, amount, NULL);
}

static void fail_servers(const struct sim_host *host, bool tells, bool breaks)
{
	for (unsigned i = 0; i < SIM_SERVERS; i++)
		if (sim_servers[i].endpoint && sim_servers[i].session.host == host)
			sim_world_fail_server(&sim_servers[i], tells, breaks);
}

/* All its servers end; it is in this state then. A frozen one tells nothing. */
static void stop(struct sim_host *host, enum sim_host_state then)
{
	const bool tells = host->state != SIM_HOST_HANGS && sim_chance(60);

	trace(host, "stops, and then", (long)then);
	host->state = then;
	fail_servers(host, tells, !tells && sim_chance(50));
}

static uint32_t last_timeline(void)
{
	uint32_t last = 0;

	for (unsigned i = 0; i < sim_hosts_count && i < SIM_HOSTS; i++)
		if (sim_hosts[i].timeline > last)
			last = sim_hosts[i].timeline;
	return last;
}

static void promote(struct sim_host *host)
{
	host->timeline = last_timeline() + 1;
	host->is_standby = false;
	host->was_primary = true;
	trace(host, "is promoted", (long)host->timeline);
}

/* PostgreSQL must be restarted for that. */
static void demote(struct sim_host *host)
{
	host->is_standby = host->was_standby = true;
	stop(host, sim_chance(50) ? SIM_HOST_LIVES : SIM_HOST_STARTS);
}

static void change_state(struct sim_host *host)
{
	enum sim_host_state then;

	if (host->state == SIM_HOST_LIVES)
		then = (enum sim_host_state)(1 + sim_below(3));
	else
		then = sim_chance(70) ? SIM_HOST_LIVES : SIM_HOST_STARTS;
	if (then == SIM_HOST_HANGS || (host->state == SIM_HOST_HANGS && sim_chance(50))) {
		then = then == SIM_HOST_HANGS ? then : SIM_HOST_LIVES;
		trace(host, "hangs or goes on:", (long)then);
		host->state = then;
	} else {
		stop(host, then);
	}
}

static bool draw_move(struct sim_host *host)
{
	switch (sim_below(6)) {
	case 0:
	case 1:
		change_state(host);
		return true;
	case 2:
		if (!host->is_standby || host->state != SIM_HOST_LIVES)
			return false;
		promote(host);
		return true;
	case 3:
		if (host->is_standby)
			return false;
		demote(host);
		return true;
	case 4:
		host->is_fenced = !host->is_fenced;
		host->was_fenced = true;
		trace(host, "is fenced:", host->is_fenced);
		return true;
	default:
		host->behind = sim_chance(50) ? 5000 : 0;
		trace(host, "is behind", (long)host->behind);
		return true;
	}
}

bool sim_moves_act(void)
{
	if (sim_hosts_count == 0 || !draw_move(&sim_hosts[sim_below(sim_hosts_count)]))
		return false;
	sim_moves_count++;
	return true;
}

/* --- the end of a run --------------------------------------------------------------------- */

/* Of the latest timeline, or a standby. */
static struct sim_host *choose_primary(void)
{
	struct sim_host *newest = sim_hosts, *chosen;

	for (unsigned i = 0; i < sim_hosts_count && i < SIM_HOSTS; i++)
		if (sim_hosts[i].timeline > newest->timeline)
			newest = &sim_hosts[i];
	chosen = &sim_hosts[sim_below(sim_hosts_count)];
	return chosen->is_standby ? chosen : newest;
}

static void revive(struct sim_host *host)
{
	if (host->state == SIM_HOST_HANGS && sim_chance(50))
		stop(host, SIM_HOST_LIVES);
	host->state = SIM_HOST_LIVES;
	host->is_fenced = false;
	host->behind = 0;
	trace(host, "lives", host->is_standby);
}

/* Else the pooler can be wrong about which of two primaries is the later one. */
static bool tells_timelines(void)
{
	return sim_hosts_answer == SIM_HOSTS_ALL && !was_limited &&
		fake_process.settings->host_check_interval > 0;
}

/* To be a standby that lives; or anything else, but its servers do not hang for ever. */
static void heal_other(struct sim_host *host, bool is_needed)
{
	if (is_needed && !host->is_standby)
		demote(host);
	if (is_needed)
		revive(host);
	else if (host->state == SIM_HOST_HANGS)
		stop(host, SIM_HOST_HANGS);
}

void sim_moves_heal(void)
{
	struct sim_host *primary, *standby;

	if (sim_hosts_count == 0)
		return;
	primary = choose_primary();
	standby = &sim_hosts[(place_of(primary) + 1 + sim_below(sim_hosts_count - 1)) %
		sim_hosts_count];
	for (unsigned i = 0; i < sim_hosts_count && i < SIM_HOSTS; i++)
		if (&sim_hosts[i] != primary)
			heal_other(
				&sim_hosts[i], &sim_hosts[i] == standby || !tells_timelines());
	revive(primary);
	if (primary->is_standby)
		promote(primary);
}

static bool tells_role(void)
{
	return sim_hosts_report || sim_hosts_answer != SIM_HOSTS_NOTHING;
}

static void check_knowledge(const struct sim_host *host)
{
	const struct host *knows = host_of(host);
	const enum host_role role = host->is_standby ? HOST_ROLE_STANDBY : HOST_ROLE_PRIMARY;

	if (!knows || !knows->watched)
		return;
	if (host->state != SIM_HOST_LIVES) {
		if (knows->failed_since == 0)
			fail_msg("host %u is thought alive", place_of(host));
		return;
	}
	/* It is tried again at that time. */
	if (knows->failed_since > 0) {
		if (knows->watch || knows->next_try + USEC_PER_SEC < loop_now(&fake_loop))
			fail_msg("host %u is thought dead", place_of(host));
		return;
	}
	if (!knows->watch)
		fail_msg("host %u is not watched", place_of(host));
	if (tells_role() && knows->role != role)
		fail_msg("host %u is thought a %s", place_of(host), host_role_name(knows));
	if (sim_hosts_answer != SIM_HOSTS_NOTHING && knows->read_only != host->is_fenced)
		fail_msg("host %u is thought %sread-only", place_of(host),
			knows->read_only ? "" : "not ");
	if (sim_hosts_answer != SIM_HOSTS_ALL || host->is_standby)
		return;
	if (knows->timeline != host->timeline)
		fail_msg("host %u is thought to be on timeline %u", place_of(host),
			knows->timeline);
	if (host->timeline == last_timeline() && knows->superseded)
		fail_msg("host %u is the last primary, and thought superseded", place_of(host));
}

void sim_moves_check_settled(void)
{
	if (sim_hosts_count == 0 || was_limited ||
		fake_process.settings->host_check_interval == 0)
		return;
	for (unsigned i = 0; i < sim_hosts_count && i < SIM_HOSTS; i++)
		check_knowledge(&sim_hosts[i]);
}

/* --- what must hold ----------------------------------------------------------------------- */

static enum target_session target_of(const struct pool *pool)
{
	return database_target_session(pool->database, fake_process.settings);
}

static bool lags(const struct pool *pool, const struct host *host)
{
	const standby_lag most =
		database_max_standby_lag(pool->database, fake_process.settings);

	return most > 0 && host->role == HOST_ROLE_STANDBY && host->progress.known &&
		host->progress.behind > (uint64_t)most;
}

/* Why a pool must not use the server, as far as the pooler knows its host; NULL: it may. */
static const char *must_not_use(const struct pool *pool, const struct server_link *server)
{
	const struct host *host = server->at;
	const enum target_session target = target_of(pool);
	const bool writes = target == TARGET_READ_WRITE || target == TARGET_PRIMARY;

	if (writes && host->role == HOST_ROLE_STANDBY)
		return "a standby";
	if (writes && host->superseded)
		return "superseded";
	if (target == TARGET_READ_WRITE && host->role == HOST_ROLE_PRIMARY && host->read_only)
		return "fenced";
	if (target == TARGET_STANDBY && host->role == HOST_ROLE_PRIMARY)
		return "a primary";
	if (target == TARGET_READ_ONLY && host->role == HOST_ROLE_PRIMARY && !host->read_only &&
		!server->read_only)
		return "read-write";
	if ((target == TARGET_STANDBY || target == TARGET_READ_ONLY) && lags(pool, host))
		return "far behind";
	return NULL;
}

void sim_moves_check_pair(const struct client_link *client, const struct server_link *server)
{
	const char *why;

	assert_false(server->watches);
	if (sim_hosts_count == 0)
		return;
	sim_moves_pairs++;
	assert_non_null(server->at);
	assert_ptr_equal(client->link.pool, server->link.pool);
	why = must_not_use(server->link.pool, server);
	if (why)
		fail_msg("a client is given a server of host %s, which is %s", server->at->name,
			why);
}

/* Returns the server of the simulated one that is not closed; NULL: it is, or is no server. */
static const struct server_link *link_of(const struct sim_server *server)
{
	if (!server->endpoint || is_closed(server->endpoint))
		return NULL;
	return server_of(endpoint_link(server->endpoint));
}

static void check_server(const struct sim_server *of, const struct server_link *server)
{
	const char *why;

	if (server->watches) {
		assert_null(server->link.peer);
		assert_true(server->login || server->link.state == SERVER_WATCHING);
		assert_true(server->login || server->at->watch == server);
		return;
	}
	assert_int_not_equal(server->link.state, SERVER_WATCHING);
	assert_non_null(server->at);
	assert_ptr_equal(server->at, host_of(of->session.host));
	why = server->login ? NULL : must_not_use(server->link.pool, server);
	if (!why)
		return;
	if (strcmp(why, "superseded") == 0)
		fail_msg("server %u of a primary with a successor is kept", of->number);
	if (!server->close_needed)
		fail_msg("server %u is kept, though its host is %s", of->number, why);
}

/* A dead host is tried by one login at a time: the databases have others. */
void sim_moves_check_use(const struct server_link *server, const struct host *host)
{
	const struct sim_host *of;

	for (unsigned i = 0; i < sim_hosts_count && i < SIM_HOSTS; i++)
		if (tries[i] == server)
			tries[i] = NULL;
	if (!host || host->failed_since == 0 || sim_hosts_count == 0)
		return;
	of = sim_host_of(host);
	if (tries[place_of(of)])
		fail_msg("host %u is dead, and two logins try it", place_of(of));
	tries[place_of(of)] = server;
}

/* Logins that began before are not counted any more. */
void sim_moves_host_answers(const struct host *host)
{
	if (sim_hosts_count > 0)
		tries[place_of(sim_host_of(host))] = NULL;
}

/* What the pooler knows may be old, but was true once. */
static void check_truth(const struct sim_host *host)
{
	const struct host *knows = host_of(host);

	if (!knows)
		return;
	if ((knows->role == HOST_ROLE_PRIMARY && !host->was_primary) ||
		(knows->role == HOST_ROLE_STANDBY && !host->was_standby) ||
		(knows->read_only && !host->was_fenced) || knows->timeline > host->timeline)
		fail_msg("host %u was never what it is thought to be", place_of(host));
}

/* Connections that watch hosts count below the caps, not for the sizes of pools. */
static void check_sizes(void)
{
	const struct pool *pool;

	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory) {
		struct pool_walk walk = pool_walk_servers(pool);
		unsigned count = 0;
		struct link *link;

		while ((link = pool_walk_next(&walk)) != NULL)
			count += !server_of(link)->watches && link->state != SERVER_LISTENING;
		assert_int_equal(pool_servers(pool), count);
	}
}

void sim_moves_check(void)
{
	if (sim_hosts_count == 0)
		return;
	was_limited = was_limited || sim_oracle_has_limits();
	for (unsigned i = 0; i < SIM_SERVERS; i++) {
		const struct server_link *server = link_of(&sim_servers[i]);

		/* Connections for cancel requests go to the host of their server. */
		if (server && server->at)
			check_server(&sim_servers[i], server);
	}
	for (unsigned i = 0; i < sim_hosts_count && i < SIM_HOSTS; i++)
		check_truth(&sim_hosts[i]);
	check_sizes();
}

/* --- clients that lose a server ----------------------------------------------------------- */

void sim_moves_note_pairs(void)
{
	memset(paired_at, 0, sizeof(paired_at));
	for (unsigned i = 0; i < SIM_SERVERS && sim_hosts_count > 0; i++) {
		const struct server_link *server = link_of(&sim_servers[i]);
		const struct sim_client *client = server ? sim_world_client_of(server) : NULL;

		if (client)
			paired_at[sim_world_slot(client)] = sim_servers[i].session.host;
	}
}

void sim_moves_note_losses(void)
{
	for (unsigned i = 0; i < SIM_CLIENTS && sim_hosts_count > 0; i++) {
		const struct host *host = paired_at[i] ? host_of(paired_at[i]) : NULL;

		if (host && host->superseded)
			sim_world_client_at(i)->close_causes |= SIM_SERVER_FAILED;
	}
}

void sim_moves_print(void)
{
	static const char *const states[] = {"lives", "starts", "refuses", "hangs"};

	for (unsigned i = 0; i < sim_hosts_count && i < SIM_HOSTS; i++) {
		const struct sim_host *host = &sim_hosts[i];
		const struct host *knows = host_of(host);

		print_error("host %u, %s: %s %s, timeline %u%s, behind %llu; thought %s%s%s, "
			    "timeline %u, behind %llu, %s%s%s\n",
			i, host->name, host->is_standby ? "standby" : "primary",
			states[host->state], host->timeline, host->is_fenced ? ", fenced" : "",
			(unsigned long long)host->behind,
			knows ? host_role_name(knows) : "nothing",
			knows && knows->superseded ? ", superseded" : "",
			knows && knows->read_only ? ", read-only" : "",
			knows ? knows->timeline : 0,
			knows ? (unsigned long long)knows->progress.behind : 0,
			knows && knows->failed_since ? "dead" : "alive",
			knows && knows->prober ? ", tried" : "",
			knows && knows->watch ? ", watched" : "");
	}
	if (sim_hosts_count > 0)
		print_error("hosts %s their roles, and answer %s\n",
			sim_hosts_report ? "report" : "do not report",
			sim_hosts_answer == SIM_HOSTS_ALL	     ? "all"
				: sim_hosts_answer == SIM_HOSTS_ROLE ? "for their role"
								     : "nothing");
}
