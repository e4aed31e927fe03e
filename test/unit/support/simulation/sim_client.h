/* SPDX-License-Identifier: ISC */
/*
 * A simulated client: what it says, whole messages drawn by chance and delivered in pieces, and
 * the oracle that judges every byte it hears.
 *
 * The oracle is a session of its own (sim_postgres) that hears what this client says and nothing
 * else: pooled or not, the client must hear the same. Only what a server may say at any time,
 * and what we have to say of ourselves, comes in between.
 */
#ifndef PGUSHER_TEST_SIM_CLIENT_H
#define PGUSHER_TEST_SIM_CLIENT_H

#include "support/fakes/fake_pool.h"
#include "support/postgres/sim_postgres.h"

/* Why a client may have been closed. */
enum sim_excuse {
	SIM_IT_LEFT = 1 << 0, /* broke its connection, or said Terminate */
	SIM_SERVER_DIED = 1 << 1, /* the one it had */
	SIM_NO_SERVER = 1 << 2, /* could be connected to */
	SIM_KILLED = 1 << 3, /* by the operator */
	SIM_WAITED = 1 << 4, /* for so long that a limit may be over */
	SIM_BEGAN = 1 << 5, /* a transaction block in statement mode */
};

/* What clients of this run do. */
struct sim_habits {
	bool transactions; /* begin and commit */
	bool names; /* statements with names */
	bool apart; /* Parse and Bind in different batches */
	bool tracked; /* we look after the names: it must close them before */
	bool sets; /* of application_name */
	unsigned shared; /* the token of texts that many prepare */
	unsigned pipeline; /* most batches in flight */
	unsigned trouble; /* how many in a hundred batches have an error in them */
};

struct sim_client {
	struct actor *actor; /* NULL: not connected */
	unsigned number;
	bool talks; /* has been welcomed */
	bool leaves; /* has said Terminate, or has gone */
	bool stalls; /* takes no more than a few bytes: last words may not reach it */
	struct buffer out; /* said, of which so much was delivered: */
	size_t delivered;
	struct buffer asked; /* the same for the oracle, of which it has heard so much: */
	size_t heard_asked;
	struct sim_postgres oracle;
	size_t heard; /* of what it was sent: judged */
	unsigned owed; /* ReadyForQuery */
	char status; /* of the last one */
	bool batch; /* has begun one and not sent its Sync */
	bool awaits_copy; /* asked for, not answered */
	bool copies;
	bool bound; /* has a portal in this batch */
	bool unnamed; /* has parsed the statement without a name, and said no Query since */
	bool told_last; /* by its server: only our own last word may come */
	bool told_fatal; /* by us: nothing may come any more */
	char fatal[8]; /* its SQLSTATE */
	uint8_t key[32];
	size_t key_length;
	unsigned aimed; /* cancel requests with its key */
	unsigned excuses; /* enum sim_excuse */
	unsigned names; /* made up so far */
	unsigned answers; /* ReadyForQuery in all */
};

/* Connect, and say a StartupMessage. */
void sim_client_begin(struct sim_client *client, unsigned number, const char *user);

/* Say something more, if it would now. False: it waits for answers, or is no longer there. */
bool sim_client_speak(struct sim_client *client, const struct sim_habits *habits);

/* Say what ends all that it has begun, and then Terminate. False: it waits for answers. */
bool sim_client_finish(struct sim_client *client);

/* Not Terminate, however. */
bool sim_client_finish_transaction(struct sim_client *client);

/* Let so many bytes of what it said reach us. False: there is nothing. */
bool sim_client_deliver(struct sim_client *client, size_t most);

/* Judge what it was sent since. */
void sim_client_hear(struct sim_client *client);

/* Its connection was closed by us: judge that, and forget it. */
void sim_client_end(struct sim_client *client);

/* Free what belongs to it, whatever its state. */
void sim_client_free(struct sim_client *client);

#endif
