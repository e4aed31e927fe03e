/* SPDX-License-Identifier: ISC */
/*
 * Turns the slow-query log on and off. While it is on, other tables of rules and events are in force
 * than else: they note what queries do, and then do what the usual ones do. While the log is off, a
 * run of the relay looks only whether there is such an event.
 */
#ifndef PGUSHER_SESSION_RULES_WATCHING_H
#define PGUSHER_SESSION_RULES_WATCHING_H

#include "model/registry.h"

/*
 * Turn the log on or off, as log_min_duration says. To be called after life_attach(), when the
 * configuration has changed, and with links of any kind open; not from inside a run of the relay.
 * Returns false when out of memory: the log is off then.
 */
bool watching_follow(struct registry *registry);

/* Note the queries that run already: links were taken over from another process. */
void watching_note_running(struct registry *registry);

/* Turn the log off, before registry_free(). */
void watching_end(struct registry *registry);

#endif
