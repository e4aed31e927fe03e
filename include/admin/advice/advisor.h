/* SPDX-License-Identifier: ISC */
/*
 * The advisor: takes a sample of all pools once a second, for the history (model/statistics/history) and
 * for advice. It walks over pools, and over the servers of pools in which something is wrong, never over
 * clients.
 */
#ifndef PGUSHER_ADMIN_ADVICE_ADVISOR_H
#define PGUSHER_ADMIN_ADVICE_ADVISOR_H

#include <stdbool.h>

#include "model/registry.h"

/* Make registry.advisor. Returns false when out of memory. */
bool advisor_start(struct registry *registry);

/* Free it, if there is one. */
void advisor_stop(struct registry *registry);

/*
 * Take a sample if the last one was taken a second ago or more: to be called some times a second. Does
 * nothing without an advisor. `now` is the loop's time.
 */
void advisor_look(struct registry *registry, usec_t now);

/*
 * Returns for which part of the time between the last two samples the worker was busy, in percent; -1:
 * not known. The registry is the first worker's.
 */
int advisor_busy(const struct registry *registry, unsigned worker);

#endif
