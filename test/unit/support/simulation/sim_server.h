/* SPDX-License-Identifier: ISC */
/* The other end of a simulated server connection: connects, logs in, works, dies, cancels. */
#ifndef PGUSHER_TEST_SIM_SERVER_H
#define PGUSHER_TEST_SIM_SERVER_H

#include "support/fakes/fake_pool.h"
#include "support/postgres/sim_postgres.h"

enum { SIM_SERVERS = 16 };

struct sim_server {
	struct actor *actor; /* NULL: none here */
	unsigned number;
	bool connecting;
	bool started; /* it has heard a StartupMessage */
	bool has_parted; /* said its last, or cannot be reached: it works no more */
	uint8_t key[8];
	size_t heard; /* of what it was sent */
	struct sim_postgres session;
};

extern struct sim_server sim_servers[SIM_SERVERS];

/* Sessions are one client's up to DISCARD ALL. */
extern bool sim_server_one_owner;

/* Take over the connections that were launched since. */
void sim_server_collect(void);

/* Its connect ends: with this errno, or 0. False: it is not connecting. */
bool sim_server_connected(struct sim_server *server, int error);

/* It handles one message, or goes on with what it was at. False: it has nothing to do. */
bool sim_server_work(struct sim_server *server);

/* The slow statement, if there is one, is through. */
bool sim_server_finish(struct sim_server *server);

/* So many bytes of what it said reach us. False: it has said nothing. */
bool sim_server_deliver(struct sim_server *server, size_t most);

/* It says something by itself; possible between two messages only. */
bool sim_server_chat(struct sim_server *server);

/*
 * It ends: with a word (57P01) if it can, at once if not; the connection breaks, or is closed.
 * What it had said and not delivered is lost.
 */
bool sim_server_die(struct sim_server *server, bool tells, bool breaks);

/* We have closed it: what was sent to it is still read, as PostgreSQL does. */
void sim_server_end(struct sim_server *server);

void sim_server_free(struct sim_server *server);

#endif
