/* SPDX-License-Identifier: ISC */
/*
 * The other end of a simulated server connection: connects, logs in, runs statements, fails,
 * and handles cancel requests.
 */
#ifndef PGUSHER_TEST_SIM_SERVER_H
#define PGUSHER_TEST_SIM_SERVER_H

#include "support/fakes/fake_pool.h"
#include "support/postgres/sim_postgres.h"

/*
 * Most servers at a time: four pools have up to 4 and the reserve, as many cancel connections,
 * and one for a welcome; and one connection watches each host.
 */
enum { SIM_SERVERS = 48 };

struct sim_server {
	struct endpoint *endpoint; /* NULL: unused */
	unsigned number;
	bool connecting;
	bool started; /* a StartupMessage was received */
	bool was_unasked; /* it has sent a message that was not requested */
	bool has_ended; /* closed its side, or could not be connected to: it runs nothing */
	uint8_t key[8];
	size_t read_offset; /* bytes received and handled */
	struct sim_postgres session;
};

extern struct sim_server sim_servers[SIM_SERVERS];

/* Each session belongs to one client up to DISCARD ALL. */
extern bool sim_server_one_owner;

/* Number of servers so far. */
extern unsigned sim_server_count;

/* This session has committed a notification: the sessions of its database that listen hear it. */
void sim_server_notify(const struct sim_postgres *from, const struct sim_notice *notice);

/* Takes over the connections that were launched since the last call. */
void sim_server_collect(void);

/* Ends the connect with this errno, or 0. Returns false when the server is not connecting. */
bool sim_server_connected(struct sim_server *server, int error);

/*
 * Handles one message, or continues the current one. Returns false when there is nothing to do.
 */
bool sim_server_work(struct sim_server *server);

/* Ends the slow statement. Returns false if there is none. */
bool sim_server_finish(struct sim_server *server);

/* Delivers so many bytes of its output to the pooler. Returns false when there is none. */
bool sim_server_deliver(struct sim_server *server, size_t most);

/* Sends an unsolicited message; possible between two messages only. */
bool sim_server_send_unsolicited(struct sim_server *server);

/*
 * The server fails: with an error (57P01) if it can, or without; the connection breaks, or is
 * closed. Output that was not delivered is lost.
 */
bool sim_server_fail(struct sim_server *server, bool tells, bool breaks);

/*
 * The pooler has closed the connection: what was sent before is still handled, as PostgreSQL
 * does.
 */
void sim_server_end(struct sim_server *server);

void sim_server_free(struct sim_server *server);

#endif
