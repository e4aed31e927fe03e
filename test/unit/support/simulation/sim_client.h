/* SPDX-License-Identifier: ISC */
/*
 * A simulated client: it sends whole messages drawn at random, delivered in pieces, and its
 * test oracle checks every byte that it receives.
 *
 * The oracle is a session of its own (sim_postgres) that receives what this client sends and
 * nothing else. Pooled or not, the client must receive the same. Only unsolicited messages of
 * servers and the pooler's own errors and notices may come in between.
 */
#ifndef PGUSHER_TEST_SIM_CLIENT_H
#define PGUSHER_TEST_SIM_CLIENT_H

#include "support/fakes/fake_pool.h"
#include "support/postgres/sim_postgres.h"

/* Why a client may have been closed. */
enum sim_close_cause {
	SIM_CLIENT_DISCONNECTED = 1 << 0, /* it broke its connection, or sent Terminate */
	SIM_SERVER_FAILED = 1 << 1, /* its paired server failed */
	SIM_NO_SERVER = 1 << 2, /* no server could be connected to */
	SIM_KILLED = 1 << 3, /* by the operator */
	SIM_WAITED = 1 << 4, /* it waited for so long that a timeout may expire */
	SIM_BEGAN_TRANSACTION = 1 << 5, /* it began a transaction block in statement mode */
	SIM_TOO_MANY = 1 << 6, /* there may be too many clients for its login */
};

/* What clients of this run send. */
struct sim_profile {
	bool transactions; /* begin and commit */
	bool names; /* named statements */
	bool prepares; /* and those of PREPARE and EXECUTE */
	bool listens; /* listen, unlisten and notify, but no savepoints */
	bool apart; /* Parse and Bind in different batches */
	bool tracked; /* the pooler tracks the names: a client must close them before reuse */
	unsigned set_percent; /* statements that change settings */
	unsigned shared; /* token of the texts that several clients prepare */
	unsigned pipeline; /* limit of batches in flight */
	unsigned error_percent; /* batches with an error */
};

struct sim_client {
	struct endpoint *endpoint; /* NULL: not connected */
	unsigned number;
	bool logged_in; /* the login has ended */
	bool disconnects; /* it has sent Terminate, or disconnected */
	bool reads_little; /* it reads a few bytes only: a final error may not be received */
	struct buffer out; /* messages sent, and how much of them was delivered: */
	size_t delivered;
	struct buffer requests; /* the same for the oracle, which has handled so much: */
	size_t handled;
	struct sim_postgres oracle;
	size_t read_offset; /* bytes received and checked */
	unsigned owed; /* ReadyForQuery messages expected */
	char status; /* of the last ReadyForQuery */
	bool batch; /* a batch without its Sync was sent */
	bool awaits_copy; /* a COPY was sent, and not answered yet */
	bool copies;
	bool resets; /* a RESET ALL was sent, and not answered yet */
	bool bound; /* a portal was bound in this batch */
	bool unnamed; /* the unnamed statement was parsed, and no Query sent since */
	bool server_ended; /* a FATAL error of its server was received */
	bool pooler_ended; /* a FATAL error of the pooler was received: nothing may follow */
	char fatal[8]; /* its SQLSTATE */
	uint8_t key[32];
	size_t key_length;
	unsigned cancel_requests; /* number of cancel requests with its key */
	bool was_limited; /* pools shared a limit of servers, which was changed since */
	bool has_waited; /* time has passed while it had no server */
	unsigned close_causes; /* enum sim_close_cause */
	unsigned names; /* number of portal names used so far */
	unsigned answers; /* number of ReadyForQuery messages in all */
	unsigned database; /* see sim_databases */
	/* Channels on which it certainly and possibly listens: see sim_notes. */
	unsigned certain, possible;
	unsigned last_note[3]; /* the last notification that it has heard on each channel */
	bool is_vague; /* it cannot be said when it stops listening */
	bool was_warned; /* that notifications may be missing */
	bool unlistened; /* at the end */
};

/* The names of the databases of this run. */
enum { SIM_DATABASES_MOST = 5 };
extern const char *const sim_database_names[SIM_DATABASES_MOST];
extern unsigned sim_databases;

enum { SIM_USERS = 2 };
extern const char *const sim_users[SIM_USERS];

/* Connects, and sends a StartupMessage. */
void sim_client_begin(struct sim_client *client, unsigned number, const char *user);

/*
 * Sends more messages, if the client may now. Returns false when it waits for answers, or is
 * not connected.
 */
bool sim_client_send(struct sim_client *client, const struct sim_profile *profile);

/*
 * Ends everything that was begun, then sends Terminate. Returns false while it waits for
 * answers.
 */
bool sim_client_finish(struct sim_client *client);

/* The same without the Terminate, which also ends what it listens on. */
bool sim_client_finish_listening(struct sim_client *client);

/* The same without that. */
bool sim_client_finish_transaction(struct sim_client *client);

/*
 * Delivers so many bytes of what was sent to the pooler. Returns false when there is nothing.
 */
bool sim_client_deliver(struct sim_client *client, size_t most);

/* Checks everything received since the last call. */
void sim_client_check(struct sim_client *client);

/* The pooler has closed the connection: checks that, and frees the client. */
void sim_client_end(struct sim_client *client);

/* Frees what belongs to it, in any state. */
void sim_client_free(struct sim_client *client);

#endif
