/* SPDX-License-Identifier: ISC */
/* Advice about a pool: its reserve, its pins, PAUSE, and its logins at PostgreSQL. */
#include <stdio.h>
#include <string.h>

#include "admin/advice/rules.h"
#include "model/pool_pins.h"
#include "wire/pin_causes.h"

enum { PERCENT = 100 };

/* A login that ended longer ago says nothing about the next one. */
#define LOGIN_LIFE (300 * USEC_PER_SEC)

static struct advice *note(struct advisor *advisor, enum advice_kind kind, struct pool *pool)
{
	return findings_note(&advisor->findings, kind, &(struct finding_subject){.pool = pool});
}

/* --- the reserve -------------------------------------------------------------------------- */

enum { RESERVE_USED, RESERVE_SIZE, POOL_SIZE, POOL_IS_AUTO };

static void look_at_reserve(struct advisor *advisor, struct pool *pool)
{
	struct advice *finding;

	/* Servers that are free again are closed soon: they are not in use. */
	if (pool_reserve_in_use(pool) == 0 || pool->server_count[SERVERS_IDLE] > 0)
		return;
	finding = note(advisor, ADVICE_RESERVE_IN_USE, pool);
	if (!finding)
		return;
	finding->figures[RESERVE_USED] = pool_reserve_in_use(pool);
	finding->figures[RESERVE_SIZE] = pool_reserve_size(pool);
	finding->figures[POOL_SIZE] = pool_size(pool);
	finding->figures[POOL_IS_AUTO] = pool_sizes_itself(pool);
	if (finding->figures[POOL_IS_AUTO])
		finding->setting = "auto_pool_max";
}

static void write_reserve(const struct advice *finding, struct buffer *out)
{
	const long long used = finding->figures[RESERVE_USED];
	const long long size = finding->figures[POOL_SIZE];

	buffer_printf(out,
		"%lld of the %lld servers that reserve_pool_size allows beyond pool_size are in use "
		"all the time, though they are meant for peaks. ",
		used, (long long)finding->figures[RESERVE_SIZE]);
	if (finding->figures[POOL_IS_AUTO])
		buffer_printf(out,
			"Raise auto_pool_max; SHOW SIZING tells how the size %lld was found.",
			size);
	else
		buffer_printf(out, "Raise pool_size from %lld to %lld.", size, size + used);
}

/* --- pins --------------------------------------------------------------------------------- */

enum { PINNED, PIN_SERVERS, PIN_CAUSE, PIN_LIMIT_REACHED };

static void look_at_pins(struct advisor *advisor, struct pool *pool)
{
	const int size = pool_size(pool);
	const int64_t servers = size > 0 ? size : (int64_t)pool_servers(pool);
	struct advice *finding;

	if (pool->pinned == 0 ||
		(pool->pinned * (int64_t)PERCENT <
				servers * findings_least(ADVICE_SESSION_PINS) &&
			pool_may_pin(pool)))
		return;
	finding = note(advisor, ADVICE_SESSION_PINS, pool);
	if (!finding)
		return;
	finding->figures[PINNED] = pool->pinned;
	finding->figures[PIN_SERVERS] = servers;
	finding->figures[PIN_CAUSE] = pool_main_pin(pool);
	finding->figures[PIN_LIMIT_REACHED] = !pool_may_pin(pool);
}

static void write_pins(const struct advice *finding, struct buffer *out)
{
	buffer_printf(out,
		"%lld of %lld servers of the pool stay with one client each between its "
		"transactions, most often for: %s",
		(long long)finding->figures[PINNED], (long long)finding->figures[PIN_SERVERS],
		pin_causes_name((session_topics)finding->figures[PIN_CAUSE]));
	if (finding->figures[PIN_LIMIT_REACHED])
		buffer_printf(out,
			". max_pinned allows no more: further clients lose it after their "
			"transaction");
	buffer_printf(out,
		". SHOW PINS has the clients: have the application drop what it leaves "
		"in the session, or take the cause out of pin_causes.");
}

/* --- PAUSE -------------------------------------------------------------------------------- */

enum { PAUSED_WAITING, PAUSED_TIME, PAUSED_DATABASE };

static void look_at_pause(struct advisor *advisor, struct pool *pool)
{
	const bool is_own = pool->database->paused;
	const usec_t since =
		is_own ? pool->database->paused_at : advisor->registry->process->operation_at;
	struct advice *finding;

	if (!pool_is_paused(pool) || pool_waiting_clients(pool) == 0)
		return;
	finding = note(advisor, ADVICE_POOL_PAUSED, pool);
	if (!finding)
		return;
	finding->figures[PAUSED_WAITING] = pool_waiting_clients(pool);
	finding->figures[PAUSED_TIME] = advisor->findings.now - since;
	finding->figures[PAUSED_DATABASE] = is_own;
}

static void write_pause(const struct advice *finding, struct buffer *out)
{
	finding_write_waiting(out, finding->figures[PAUSED_WAITING]);
	buffer_printf(out, " because of a PAUSE%s ",
		finding->figures[PAUSED_DATABASE] ? " of the database" : "");
	finding_write_time(out, finding->figures[PAUSED_TIME]);
	buffer_printf(out, " ago: RESUME%s lets them go on.",
		finding->figures[PAUSED_DATABASE] ? " of the database" : "");
}

/* --- logins at PostgreSQL ----------------------------------------------------------------- */

enum { LOGIN_WAITING, LOGIN_SERVERS, LOGIN_TIME };

static bool is_of(const struct failure *failure, const char *class)
{
	return strncmp(failure->sqlstate, class, strlen(class)) == 0;
}

/*
 * PostgreSQL: invalid authorization, and unknown database. Without an answer of the server it is the
 * host that cannot be reached.
 */
static const char *setting_for(const struct pool *pool)
{
	if (pool->wanting)
		return NULL;
	if (!pool->refused)
		return "host";
	if (is_of(&pool->last_failure, "28"))
		return "auth_file";
	return is_of(&pool->last_failure, "3D") ? "dbname" : NULL;
}

static void look_at_failure(struct advisor *advisor, struct pool *pool)
{
	/* PostgreSQL: too_many_connections. */
	const bool is_full = pool->refused && is_of(&pool->last_failure, "53300");
	struct advice *finding;

	if (!pool->failing)
		return;
	finding = note(advisor, is_full ? ADVICE_SERVER_FULL : ADVICE_LOGIN_FAILING, pool);
	if (!finding)
		return;
	finding->figures[LOGIN_WAITING] = pool_waiting_clients(pool);
	finding->figures[LOGIN_SERVERS] = pool_connected_servers(pool);
	if (!is_full)
		finding->setting = setting_for(pool);
	finding_set_name(finding, pool->last_failure.text);
	/* Else the code is ours. */
	snprintf(finding->address, sizeof(finding->address), "%s",
		pool->refused ? pool->last_failure.sqlstate : "");
}

/* The text of the error may have names; its code has none. */
static void write_failure(const struct advice *finding, bool with_names, struct buffer *out)
{
	if (finding->kind == ADVICE_SERVER_FULL)
		buffer_printf(out, "PostgreSQL accepts no more connections");
	else
		buffer_printf(out, "No login at PostgreSQL succeeds");
	if (finding->address[0])
		buffer_printf(out, " (SQLSTATE %s)", finding->address);
	if (with_names && finding->name[0])
		buffer_printf(out, ": %s", finding->name);
	buffer_printf(out, "; %lld servers are connected, and ",
		(long long)finding->figures[LOGIN_SERVERS]);
	finding_write_waiting(out, finding->figures[LOGIN_WAITING]);
	buffer_printf(out, ". ");
	if (finding->kind == ADVICE_SERVER_FULL)
		buffer_printf(out,
			"Bound the connections of all pools by max_server_connections, below what "
			"max_connections leaves, or raise that in PostgreSQL.");
	else if (finding->setting)
		buffer_printf(out, "Check %s, and the log of PostgreSQL.", finding->setting);
	else
		buffer_printf(out, "The log has the attempts.");
}

static void look_at_login_time(struct advisor *advisor, struct pool *pool)
{
	const usec_t now = advisor->findings.now;
	struct advice *finding;

	if (pool->login_at == 0 || now - pool->login_at > LOGIN_LIFE ||
		pool->login_time / USEC_PER_MSEC < findings_least(ADVICE_SLOW_LOGINS))
		return;
	finding = note(advisor, ADVICE_SLOW_LOGINS, pool);
	if (finding)
		finding->figures[LOGIN_TIME] = pool->login_time;
}

static void write_login_time(const struct advice *finding, struct buffer *out)
{
	buffer_printf(out, "The last login at PostgreSQL took ");
	finding_write_time(out, finding->figures[LOGIN_TIME]);
	buffer_printf(out,
		": clients wait for that when the pool grows. Name resolution, TLS, or "
		"authentication at PostgreSQL (LDAP, RADIUS) is slow. Keep servers for peaks by "
		"min_pool_size.");
}

/* --- all ---------------------------------------------------------------------------------- */

void pool_advice_look(struct advisor *advisor, struct pool *pool)
{
	look_at_reserve(advisor, pool);
	look_at_pins(advisor, pool);
	look_at_pause(advisor, pool);
	look_at_failure(advisor, pool);
	look_at_login_time(advisor, pool);
}

bool pool_advice_write(const struct advice *finding, bool with_names, struct buffer *out)
{
	switch ((int)finding->kind) {
	case ADVICE_RESERVE_IN_USE:
		write_reserve(finding, out);
		return true;
	case ADVICE_SESSION_PINS:
		write_pins(finding, out);
		return true;
	case ADVICE_POOL_PAUSED:
		write_pause(finding, out);
		return true;
	case ADVICE_LOGIN_FAILING:
	case ADVICE_SERVER_FULL:
		write_failure(finding, with_names, out);
		return true;
	case ADVICE_SLOW_LOGINS:
		write_login_time(finding, out);
		return true;
	default:
		return false;
	}
}
