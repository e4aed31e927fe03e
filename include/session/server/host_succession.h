/* SPDX-License-Identifier: ISC */
/*
 * Which of two primaries is the successor of the other. The other one is superseded (host.superseded):
 * what is written there would be lost.
 */
#ifndef PGUSHER_SESSION_SERVER_HOST_SUCCESSION_H
#define PGUSHER_SESSION_SERVER_HOST_SUCCESSION_H

#include "model/host/hosts.h"
#include "model/registry.h"

/*
 * Compare the host, a primary, with the other primaries that databases list with it. promoted: it was a
 * standby before, or has a later timeline than before.
 */
void host_succession_judge(struct registry *registry, struct host *host, bool promoted);

/* The host is no primary any more: one that it was the successor of may be the primary again. */
void host_succession_without(struct registry *registry, const struct host *demoted);

/* Is there another primary with which a database lists the host, and which is not superseded? */
bool host_succession_has_rival(struct registry *registry, const struct host *host);

/* The configuration has changed: superseded hosts may not be listed with their successors any more. */
void host_succession_reconfigured(struct registry *registry);

#endif
