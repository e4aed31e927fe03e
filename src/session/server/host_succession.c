/* SPDX-License-Identifier: ISC */
#include "session/server/host_succession.h"

#include "model/host/host_items.h"
#include "session/server/host_fit.h"

/* May both be of one system, so that one primary is the successor of the other? */
static bool are_related(const struct host *one, const struct host *other)
{
	return one->system == 0 || other->system == 0 || one->system == other->system;
}

static bool is_listed_with(
	struct registry *registry, const struct host *one, const struct host *other)
{
	struct pool *pool;

	TAILQ_FOREACH (pool, &registry->pools, in_registry) {
		if (host_fit_applies(pool) && host_items_have(pool, one) &&
			host_items_have(pool, other))
			return true;
	}
	return false;
}

static void supersede(struct host *old, const struct host *new)
{
	char a[HOST_TEXT_SIZE], b[HOST_TEXT_SIZE];

	if (old->superseded)
		return;
	old->superseded = true;
	log_write(LEVEL_WARNING,
		"host %s is the primary in place of %s, which is not written to any more",
		host_text(new, a), host_text(old, b));
}

/*
 * Of two primaries of one system the one with the later timeline is the successor. If timelines are not
 * known, it is the one that was promoted just now, or the one that answers.
 */
static bool is_successor(const struct host *host, const struct host *other, bool promoted)
{
	if (host->timeline && other->timeline && host->timeline != other->timeline)
		return host->timeline > other->timeline;
	/* One that was superseded does not become the primary again by the loss of its successor. */
	return promoted ||
		(!host->superseded && host->failed_since == 0 && other->failed_since > 0);
}

/* The host says that it is a primary, or is one that is lost. promoted: it was a standby before. */
void host_succession_judge(struct registry *registry, struct host *host, bool promoted)
{
	struct host *other;

	TAILQ_FOREACH (other, &registry->hosts, in_hosts) {
		if (other == host || other->role != HOST_ROLE_PRIMARY ||
			!are_related(host, other) || !is_listed_with(registry, host, other))
			continue;
		if (is_successor(host, other, promoted)) {
			host->superseded = false;
			supersede(other, host);
		} else if (is_successor(other, host, false)) {
			other->superseded = false;
			supersede(host, other);
		}
	}
}

/* Its successor may not be listed with it any more. */
bool host_succession_has_rival(struct registry *registry, const struct host *host)
{
	const struct host *other;

	TAILQ_FOREACH (other, &registry->hosts, in_hosts) {
		if (other != host && other->role == HOST_ROLE_PRIMARY && !other->superseded &&
			are_related(host, other) && is_listed_with(registry, host, other))
			return true;
	}
	return false;
}

/* The host is no primary any more: one that it was the successor of may be the primary again. */
void host_succession_without(struct registry *registry, const struct host *demoted)
{
	struct host *other;

	TAILQ_FOREACH (other, &registry->hosts, in_hosts) {
		if (other->role != HOST_ROLE_PRIMARY || !other->superseded ||
			!are_related(demoted, other) ||
			!is_listed_with(registry, demoted, other))
			continue;
		other->superseded = false;
		host_succession_judge(registry, other, false);
	}
}

void host_succession_reconfigured(struct registry *registry)
{
	struct host *host;

	TAILQ_FOREACH (host, &registry->hosts, in_hosts) {
		if (host->superseded && !host_succession_has_rival(registry, host))
			host->superseded = false;
	}
}
