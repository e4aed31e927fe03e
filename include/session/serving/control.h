/* SPDX-License-Identifier: ISC */
/*
 * Administrative commands on pools: PAUSE, RESUME, KILL, RECONNECT and the like. The console
 * and signals call them; the console checks rights and arguments, and sends the answers.
 *
 * `database` selects a database; NULL selects all but the console.
 */
#ifndef PGUSHER_SESSION_SERVING_CONTROL_H
#define PGUSHER_SESSION_SERVING_CONTROL_H

#include "model/registry.h"

/* Stop pairing clients with servers. Closes servers that are not in use. */
void control_pause(struct registry *registry, struct database *database);

/*
 * Close the servers of paused pools that are no longer in use. Regular upkeep does this too;
 * the console calls it before it reports the end of a PAUSE.
 */
void control_close_unused(struct registry *registry);

/*
 * The servers that a command waits for, and the client that has had one of them for the
 * longest.
 */
struct busy_servers {
	unsigned servers;
	unsigned transactions; /* of these: in a transaction or a query */
	const struct client_link *longest; /* valid in this turn; NULL: no client has one */
	usec_t since; /* start of its transaction, else its last request */
};

/* Returns the servers in use, which a pause waits for. */
struct busy_servers control_count_busy(
	const struct registry *registry, const struct database *database);

/* Returns true if no server is in use, so that the pause is complete. */
bool control_pause_is_done(const struct registry *registry, const struct database *database);

/* End a pause; for all databases, also a SUSPEND. */
void control_resume(struct registry *registry, struct database *database);

/*
 * Retire all servers: each is closed when it is free. Servers that log in are closed at once.
 */
void control_reconnect(struct registry *registry, struct database *database);

/* The same for another cause, which metrics show. */
void control_retire(
	struct registry *registry, struct database *database, enum server_closing cause);

/* Returns the retired servers that are not closed yet. */
struct busy_servers control_count_retired(
	const struct registry *registry, const struct database *database);

/* Returns true if there is such a server. */
bool control_is_reconnecting(const struct registry *registry, const struct database *database);

/*
 * Close all clients and servers, and drop their pools. paused: pause the database too, as KILL
 * does.
 */
void control_kill(struct registry *registry, struct database *database, bool paused);

/* Close all servers, and with an error all clients but those of the console. */
void control_close_pools(struct registry *registry, enum reason reason);

/*
 * The process ends: close all clients and servers, the console too. Clients are sent no error.
 * With REASON_DISKO_OVER servers are sent no Terminate either, since another process has the
 * connections.
 */
void control_close_all(struct registry *registry, enum reason reason);

/* Close the client with this id (SHOW CLIENTS). Returns false if there is none. */
bool control_kill_client(struct registry *registry, uint64_t id);

#endif
