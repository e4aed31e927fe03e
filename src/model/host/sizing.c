/* SPDX-License-Identifier: ISC */
#include "model/host/sizing.h"

/* --- the formula -------------------------------------------------------------------------- */

static unsigned without(unsigned all, unsigned part)
{
	return all > part ? all - part : 0;
}

/* Of all that PostgreSQL accepts of common users. */
static unsigned usable(const struct sizing_facts *facts)
{
	return without(facts->max_connections, facts->reserved);
}

/* What pools that compute their size may have in all, so that others find a place too. */
static unsigned available(const struct sizing_facts *facts)
{
	const unsigned others = facts->max_connections / SIZING_FOR_OTHERS;

	return without(usable(facts), others + facts->fixed);
}

static unsigned wanted(const struct sizing_facts *facts)
{
	if (facts->cores > 0)
		return facts->cores * SIZING_PER_CORE;
	return available(facts) / SIZING_WITHOUT_CORES;
}

static void lower(struct sizing *sizing, unsigned limit, enum sizing_bound bound)
{
	if (limit >= (unsigned)sizing->size)
		return;
	sizing->size = limit > 0 ? (int)limit : 1;
	sizing->bound = bound;
}

/* Below SIZING_LEAST too: more could not be had. */
static void apply_limits(struct sizing *sizing, const struct sizing_facts *facts)
{
	if (facts->max_connections > 0)
		lower(sizing, usable(facts), SIZED_BY_CONNECTIONS);
	if (facts->role_limit > 0)
		lower(sizing, facts->role_limit, SIZED_BY_ROLE);
	if (facts->database_limit > 0)
		lower(sizing, facts->database_limit, SIZED_BY_DATABASE);
	if (facts->cap > 0)
		lower(sizing, facts->cap, SIZED_BY_CAP);
	if (facts->refused_at > 0)
		lower(sizing, facts->refused_at, SIZED_BY_REFUSAL);
}

static unsigned share_of(struct sizing *sizing, const struct sizing_facts *facts)
{
	const unsigned sharing = facts->pools * facts->processes;
	unsigned share = sizing->wanted / sharing, connections;

	sizing->bound = facts->cores > 0 ? SIZED_BY_CORES : SIZED_BY_CONNECTIONS;
	if (facts->max_connections == 0)
		return share;
	connections = without(sizing->available / sharing, facts->reserve);
	if (connections >= share)
		return share;
	sizing->bound = SIZED_BY_CONNECTIONS;
	sizing->is_crowded = true;
	return connections;
}

struct sizing sizing_compute(const struct sizing_facts *facts)
{
	struct sizing sizing = {.wanted = wanted(facts), .available = available(facts)};

	if (facts->cores == 0 && facts->max_connections == 0) {
		sizing.share = SIZING_UNKNOWN;
		sizing.bound = SIZED_BY_NOTHING;
	} else {
		sizing.share = share_of(&sizing, facts);
	}
	sizing.size = (int)sizing.share;
	if (sizing.share < SIZING_LEAST) {
		sizing.size = SIZING_LEAST;
		sizing.bound = SIZED_BY_LEAST;
	}
	lower(&sizing, facts->most, SIZED_BY_MOST);
	apply_limits(&sizing, facts);
	return sizing;
}

/* --- in words ----------------------------------------------------------------------------- */

const char *cores_source_name(enum cores_source source)
{
	static const char *const names[] = {
		[CORES_UNKNOWN] = "unknown",
		[CORES_CONFIGURED] = "host_cores",
		[CORES_OF_SERVER] = "server",
		[CORES_OF_PROCESS] = "this machine",
	};

	return names[source];
}

static void explain_sharing(const struct sizing_facts *facts, struct buffer *out)
{
	if (facts->pools > 1)
		buffer_printf(out, " / %u pools", facts->pools);
	if (facts->processes > 1)
		buffer_printf(out, " / %u processes", facts->processes);
}

static void explain_connections(const struct sizing_facts *facts, struct buffer *out)
{
	buffer_printf(out,
		"(%u max_connections - %u reserved - %u for others - %u of other pools)",
		facts->max_connections, facts->reserved,
		facts->max_connections / SIZING_FOR_OTHERS, facts->fixed);
}

static void explain_share(
	const struct sizing *sizing, const struct sizing_facts *facts, struct buffer *out)
{
	if (sizing->is_crowded) {
		explain_connections(facts, out);
	} else if (facts->cores > 0) {
		buffer_printf(out, "%u cores (%s) * %d", facts->cores,
			cores_source_name(facts->cores_from), SIZING_PER_CORE);
	} else {
		explain_connections(facts, out);
		buffer_printf(out, " / %d (cores not known)", SIZING_WITHOUT_CORES);
	}
	explain_sharing(facts, out);
	if (sizing->is_crowded && facts->reserve > 0)
		buffer_printf(out, " - %u reserve_pool_size", facts->reserve);
	buffer_printf(out, " = %u", sizing->share);
}

const char *sizing_bound_name(enum sizing_bound bound)
{
	static const char *const names[] = {
		[SIZED_BY_NOTHING] = "nothing known",
		[SIZED_BY_CORES] = "cores",
		[SIZED_BY_CONNECTIONS] = "max_connections",
		[SIZED_BY_LEAST] = "least",
		[SIZED_BY_MOST] = "auto_pool_max",
		[SIZED_BY_ROLE] = "role",
		[SIZED_BY_DATABASE] = "database",
		[SIZED_BY_CAP] = "connection limits",
		[SIZED_BY_REFUSAL] = "refusal",
	};

	return names[bound];
}

/* What has put another number in place of the share. */
static const char *bound_text(enum sizing_bound bound)
{
	static const char *const texts[] = {
		[SIZED_BY_NOTHING] = "",
		[SIZED_BY_CORES] = "",
		[SIZED_BY_CONNECTIONS] = "max_connections has no more than",
		[SIZED_BY_LEAST] = "at least",
		[SIZED_BY_MOST] = "auto_pool_max",
		[SIZED_BY_ROLE] = "CONNECTION LIMIT of the role",
		[SIZED_BY_DATABASE] = "CONNECTION LIMIT of the database",
		[SIZED_BY_CAP] = "max_db_connections, max_user_connections or "
				 "max_server_connections",
		[SIZED_BY_REFUSAL] = "the server accepts no more now than",
	};

	return texts[bound];
}

void sizing_explain(
	const struct sizing *sizing, const struct sizing_facts *facts, struct buffer *out)
{
	if (facts->cores == 0 && facts->max_connections == 0)
		buffer_printf(out, "the server tells nothing: %d", SIZING_UNKNOWN);
	else
		explain_share(sizing, facts, out);
	if (sizing->size != (int)sizing->share)
		buffer_printf(out, "; %s %d", bound_text(sizing->bound), sizing->size);
}
