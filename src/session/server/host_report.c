/* SPDX-License-Identifier: ISC */
#include "session/server/host_report.h"

#include <string.h>

#include "model/host/host_items.h"
#include "model/shared/host_news.h"
#include "session/server/host_fit.h"
#include "session/server/host_role.h"
#include "session/server/host_succession.h"

static const char hot_standby[] = "in_hot_standby",
		  read_only[] = "default_transaction_read_only";

/* --- what follows ------------------------------------------------------------------------- */

/* Another primary may be superseded now, or not any more. */
static void follow_role(struct registry *registry, struct host *host, enum host_role before)
{
	if (host->role == HOST_ROLE_PRIMARY)
		host_succession_judge(registry, host, before == HOST_ROLE_STANDBY);
	else if (before == HOST_ROLE_PRIMARY)
		host_succession_without(registry, host);
}

static void log_foreign(const struct pool *pool, const struct host *host)
{
	char text[HOST_TEXT_SIZE];

	if (host->system == 0 || host->system == pool->database->system ||
		pool_target_session(pool) == TARGET_ANY || !host_items_have(pool, host))
		return;
	log_write(LEVEL_ERROR,
		"database %s: host %s is of another PostgreSQL system than the others (%llu, not "
		"%llu)%s",
		pool->database->name, host_text(host, text), (unsigned long long)host->system,
		(unsigned long long)pool->database->system,
		pool->registry->process->settings->host_identity_check ? ", and is not used"
								       : "");
}

/* The system is that of the first servers that clients had. */
static uint64_t system_of_servers(const struct pool *pool)
{
	struct pool_walk walk = pool_walk_servers(pool);
	const struct link *link;

	while ((link = pool_walk_next(&walk)) != NULL) {
		const struct server_link *server = (const struct server_link *)link;

		if (server->at && server->at->system && !server->watches && !server->login)
			return server->at->system;
	}
	return 0;
}

/* The host has told another system than before, or the first one. */
static void compare_system(struct pool *pool, const struct host *host)
{
	struct database *database = pool->database;

	if (database->system != 0) {
		log_foreign(pool, host);
		return;
	}
	database->system = system_of_servers(pool);
	if (database->system == 0)
		return;
	TAILQ_FOREACH (host, &pool->registry->hosts, in_hosts)
		log_foreign(pool, host);
}

static void compare_systems(struct registry *registry, const struct host *host)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (host_fit_applies(pool))
			compare_system(pool, host);
	}
}

/* Returns whether system or timeline differ from what was known. */
static bool identify(
	struct registry *registry, struct host *host, uint64_t system, uint32_t timeline)
{
	bool changed = false;

	if (system != host->system) {
		host->system = system;
		compare_systems(registry, host);
		changed = true;
	}
	if (timeline != host->timeline) {
		/* A primary that has another timeline than before was promoted meanwhile. */
		const bool promoted = host->timeline && timeline > host->timeline;

		host->timeline = timeline;
		if (host->role == HOST_ROLE_PRIMARY)
			host_succession_judge(registry, host, promoted);
		changed = true;
	}
	return changed;
}

/* --- other workers ------------------------------------------------------------------------ */

/* News may be older than what servers here have told. */
static bool was_told_since(const struct host *host, usec_t at)
{
	return host->told_at > at || host->role_since > at;
}

static bool set_role(struct registry *registry, struct host *host, const struct host_news *news)
{
	const enum host_role before = host->role;

	if (news->role == HOST_ROLE_UNKNOWN ||
		!host_set_role(host, news->role, news->told_by, news->at))
		return false;
	follow_role(registry, host, before);
	return true;
}

static void take_role(
	struct registry *registry, struct host *host, const struct host_news *news)
{
	if (!was_told_since(host, news->at) && set_role(registry, host, news))
		host_role_wake(registry);
}

static void take_answer_to_probe(
	struct registry *registry, struct host *host, const struct host_news *news)
{
	bool changed;

	if (was_told_since(host, news->at))
		return;
	changed = set_role(registry, host, news);
	if (host->read_only != news->read_only) {
		host->read_only = news->read_only;
		changed = true;
	}
	/* The probe may have asked for the role only. */
	if (news->system != 0)
		changed |= identify(registry, host, news->system, news->timeline);
	if (changed)
		host_role_wake(registry);
}

/* What is known of the host has changed: tell the other workers, and let pools use it. */
static void act_on_change(
	struct registry *registry, const struct host *host, host_news_function *take)
{
	host_news_send(registry, host, take);
	host_role_wake(registry);
}

/* --- what servers say --------------------------------------------------------------------- */

static enum host_role role_of(const char *value)
{
	return strcmp(value, "on") == 0 ? HOST_ROLE_STANDBY : HOST_ROLE_PRIMARY;
}

/* Returns whether the role is another one than was known, or the first one that is known. */
static bool learn(struct server_link *server, enum host_role role, enum host_teller teller)
{
	struct host *host = server->at;
	const enum host_role before = host->role;
	char text[HOST_TEXT_SIZE];

	if (role == HOST_ROLE_UNKNOWN ||
		!host_set_role(host, role, teller, loop_now(server->link.stream.loop)))
		return false;
	if (host->watched || before != HOST_ROLE_UNKNOWN)
		link_log(&server->link, LEVEL_LOG, "host %s is a %s%s, as a %s tells",
			host_text(host, text), host_role_name(host),
			before == HOST_ROLE_UNKNOWN ? "" : " now", host_teller_name(host));
	follow_role(link_registry(&server->link), host, before);
	return true;
}

void host_report_take_parameter(struct server_link *server, const char *name, const char *value)
{
	if (strcmp(name, hot_standby) == 0)
		server->role = role_of(value);
	else if (strcmp(name, read_only) == 0)
		server->read_only = strcmp(value, "on") == 0;
	/* This session may write at least: what an older probe has told is over. */
	if (strcmp(name, read_only) == 0 && !server->read_only && server->at)
		server->at->read_only = false;
}

void host_report_logged_in(struct server_link *server)
{
	if (server->at && learn(server, server->role, HOST_TOLD_BY_LOGIN))
		act_on_change(link_registry(&server->link), server->at, take_role);
}

void host_report_changed(struct server_link *server, const char *name, const char *value)
{
	struct registry *registry = link_registry(&server->link);

	if (!server->at)
		return;
	if (strcmp(name, hot_standby) == 0) {
		if (learn(server, role_of(value), HOST_TOLD_BY_REPORT))
			act_on_change(registry, server->at, take_role);
	} else if (strcmp(name, read_only) == 0) {
		/* The client may have set it, or the host may have been fenced. */
		host_role_doubt(server);
	}
}

/* --- what probes say ---------------------------------------------------------------------- */

void host_report_probed(struct server_link *server, const struct host_facts *facts)
{
	struct registry *registry = link_registry(&server->link);
	struct host *host = server->at;
	bool changed = learn(server, facts->role, HOST_TOLD_BY_PROBE);
	char text[HOST_TEXT_SIZE];

	if (host->read_only != facts->read_only) {
		host->read_only = facts->read_only;
		link_log(&server->link, LEVEL_LOG, "host %s is %s now, as a probe tells",
			host_text(host, text), facts->read_only ? "read-only" : "read-write");
		changed = true;
	}
	host->progress = facts->progress;
	host->progress.told_at = loop_now(registry->loop);
	hosts_compare_progress(&registry->hosts, host);
	changed |= identify(registry, host, facts->system, facts->timeline);
	/* The one that was promoted in its place may have turned out to be of another system. */
	if (host->superseded && !host_succession_has_rival(registry, host)) {
		host->superseded = false;
		changed = true;
	}
	if (changed)
		act_on_change(registry, host, take_answer_to_probe);
	else
		host_role_retire_lagging(registry, host);
}
