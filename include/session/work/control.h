/* SPDX-License-Identifier: ISC */
/*
 * What an operator does to pools: PAUSE, RESUME, KILL, RECONNECT and their kin, as verbs. The
 * console and the signals both call these; rights, arguments and answers are the console's.
 */
#ifndef PGUSHER_SESSION_WORK_CONTROL_H
#define PGUSHER_SESSION_WORK_CONTROL_H

#include "model/registry.h"

/* Stop giving out servers, for one database or (NULL) for all. Idle servers are closed. */
void control_pause(struct registry *registry, struct database *database);

/*
 * Close what has come to rest in paused pools since. Part of the regular upkeep too; asked for
 * here by those who wait for a pause, so that what is quiet has no server left.
 */
void control_close_unused(struct registry *registry);

/* Servers that something waits for, and who has had one of them for the longest. */
struct busy_servers {
	unsigned servers;
	const struct client_link *longest; /* lent for this turn; NULL: no client has any */
	usec_t since; /* when his transaction began, or when he was last heard of */
};

/* What a pause of the database (NULL: of all) still has to wait for: servers in use. */
struct busy_servers control_count_busy(
	const struct registry *registry, const struct database *database);

/* Is nothing of what was paused in use any more? */
bool control_pause_is_done(const struct registry *registry, const struct database *database);

/* Go on. */
void control_resume(struct registry *registry, struct database *database);

/* Retire every server of the database (NULL: of all), without cutting a transaction. */
void control_reconnect(struct registry *registry, struct database *database);

/* The same for another cause, which metrics tell. */
void control_retire(
	struct registry *registry, struct database *database, enum server_closing cause);

/* Servers of the database (NULL: of any) that still have to be retired. */
struct busy_servers control_count_marked(
	const struct registry *registry, const struct database *database);

/* Is there any of these? */
bool control_is_reconnecting(const struct registry *registry, const struct database *database);

/*
 * Cut every client and server of the database (NULL: of all but the console) and drop its pools;
 * paused: leave it paused, as KILL does.
 */
void control_kill(struct registry *registry, struct database *database, bool paused);

/* Cut every client but those of the console, who are told why, and every server. */
void control_close_pools(struct registry *registry, enum reason reason);

/*
 * The process ends: close all there is, the console too, without a word to clients; DISKO_OVER:
 * nor to servers, since another process has both.
 */
void control_close_all(struct registry *registry, enum reason reason);

/* Cut the client with that id (SHOW CLIENTS). False: there is none. */
bool control_kill_client(struct registry *registry, uint64_t id);

#endif
