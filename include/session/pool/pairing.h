/* SPDX-License-Identifier: ISC */
/*
 * Who sits with whom: gives a client a server, takes it back, opens and retires servers.
 *
 * Only this module sets link.peer. Waiting clients are served strictly in order of arrival; a
 * freed server goes to the oldest of them before anybody else can take it.
 */
#ifndef PGUSHER_SESSION_POOL_PAIRING_H
#define PGUSHER_SESSION_POOL_PAIRING_H

#include "model/registry.h"

enum taken {
	TAKEN_READY, /* paired: pass the message on */
	TAKEN_WAITING, /* in the queue: hold the message */
	TAKEN_CLOSED, /* the client was refused and closed */
};

/* An IDLE client has a whole message for a server. Time limit: query_wait_timeout. */
enum taken pairing_take(struct client_link *client);

/* A client of replication and the server that has logged in for it are one until either leaves. */
void pairing_bind(struct client_link *client, struct server_link *server);

/* A paired server may be free: if it is clean and all has been passed on, take it back. */
void pairing_settle(struct server_link *server);

/*
 * Take a clean server from its client, who stays IDLE or is closing, if it has one. It goes on to the
 * reset query, a check, the next waiter or the idle list, or is retired.
 */
void pairing_release(struct server_link *server);

/*
 * No server of the pool is up, and the last attempt to get one failed: do not let the client wait
 * for one. True: it was closed, and the next attempt is under way if it is due.
 */
bool pairing_refuse_hopeless(struct client_link *client, struct pool *pool);

/* What the messages of a paired client mean in its mode. */
const struct relay_rule *pairing_client_rules(const struct client_link *client);

/* A server that has logged in, or passed its check: to the first waiter, else to the idle list. */
void pairing_offer(struct server_link *server);

/* A server has gone, or a client has stopped waiting for it: unpair without any judgement. */
void pairing_part(struct link *link);

/*
 * At the end of a turn: look after every pool that has work (waiters without a server). The task
 * is registry.work_task.
 */
void pairing_work(struct loop_task *task);

/*
 * The client of a server has left or is leaving: release the server if it is clean, else have it
 * drained (session/pool/draining) or closed. It must have been parted already. politely: the client said
 * Terminate, so that what it had sent before may end by itself.
 */
void pairing_abandon(struct server_link *server, bool politely);

/* The last cancel request for a HELD server has ended: go on with its release. */
void pairing_unhold(struct server_link *server);

/* The reset query or the check has ended well. */
void pairing_tested(struct server_link *server);

/* A server of the database was freed: pools that wait for room in it may try again. */
void pairing_wake_database(struct database *database);

/* If it has reached server_lifetime and its turn to go has come: close it and return true. */
bool pairing_retire_old(struct server_link *server);

#endif
