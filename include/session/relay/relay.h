/* SPDX-License-Identifier: ISC */
/*
 * Relays messages between a client and a server. This is the hot path.
 *
 * One readable event is one run: receive once, call the judges of the messages that have one,
 * send everything that passes in one call, and only then do what follows from it (return the
 * server to its pool, resume the peer, close). Most messages have no judge and pass by length.
 * The judge of a message type is in the table of rules that the link points at; the tables are
 * declared in relay/relay_rules.h.
 *
 * The relay does not use databases, users or authentication.
 */
#ifndef PGUSHER_SESSION_RELAY_RELAY_H
#define PGUSHER_SESSION_RELAY_RELAY_H

#include <sys/uio.h>

#include "model/registry.h"
#include "wire/frame.h"

enum {
	/* Maximum number of pieces in one send; a run with more of them sends several times. */
	RELAY_PIECES = 64,
	/* Maximum length of a message that must be whole for its judge (ParameterStatus). */
	RELAY_WHOLE_MAX = 64 * 1024,
	/* Maximum number of copied bytes in one send; a run with more sends several times. */
	RELAY_INSERTS = 1024,
	/*
	 * Number of bytes that may be written behind the room for an insert: see bind_named().
	 */
	RELAY_SPARE = 32,
	/* Maximum length of the messages that are sent together with our SETs, and kept. */
	RELAY_KEPT_MAX = 16 * 1024,
};

enum verdict {
	RELAY_PASS, /* send it to the peer */
	RELAY_DROP, /* do not send it */
	RELAY_HOLD, /* hold it and what follows, until relay_client_resume() */
	RELAY_STOP, /* the link is closed or will be: ignore the rest */
	RELAY_AGAIN, /* look at `at` again: the link's rules have changed, or `at` has moved */
	RELAY_MORE, /* hold it, and call the judge again when more bytes have arrived */
};

struct relay_run {
	struct link *from;
	struct link *to; /* the peer when the run began, though unpaired since; NULL: none */
	struct client_link *client; /* NULL: the server has no client */
	struct server_link *server; /* NULL: the client has no server yet */
	struct loop *loop;
	uint32_t max_message; /* max_packet_size */
	uint32_t hold_max; /* pkt_buf: a client's message up to this length must be whole */
	/* Of the run's first message; of a server: of the first that answers its client. */
	const uint8_t *start;
	const uint8_t *at, *end; /* the bytes that are still to be judged */
	const uint8_t *slice; /* start of the bytes that pass and are not in `pieces` yet */
	/* Of a server: end of the bytes that were requested; NULL: requests are in flight. */
	const uint8_t *requested;
	struct frame frame; /* the message at `at` */
	bool whole; /* the message at `at` has arrived completely */
	bool ended; /* end the walk over the messages */
	bool hold; /* hold the rest, and pause reading */
	bool own_done; /* a query of our own has ended: the event own_query_done follows */
	bool broken; /* sending failed: handled at the end of the run */
	char status; /* of a client: its server's transaction status when the run began */
	bool replayable; /* has a message that may need a replay: see statements/replay */
	bool is_replay; /* of a client: this run replays the kept batch */
	uint32_t answered; /* number of its first messages that pgusher has answered already */
	bool replay_due; /* of a server: its client's batch must be replayed */
	uint32_t in_flight; /* of a client: requests in flight when the run began */
	const uint8_t *batch; /* end of the run's last Sync or Query; NULL: none in this run */
	/*
	 * Valid if `batch` is set: start of the batch that its Sync has ended; NULL: it began
	 * with the run or before. After a Query: as `batch`.
	 */
	const uint8_t *last_batch;
	struct failure failure; /* valid if doomed */
	bool doomed; /* close `from` for `failure` when everything before it was sent */
	int count; /* of pieces */
	struct iovec pieces[RELAY_PIECES];
	uint32_t inserted; /* bytes in use of inserts */
	uint8_t inserts[RELAY_INSERTS + RELAY_SPARE]; /* the bytes of copied inserts */
};

/* How to handle one type of message. */
struct relay_rule {
	enum verdict (*judge)(struct relay_run *run); /* NULL: the message passes */
	bool whole; /* call the judge only when the message is whole */
	bool at_once; /* call the judge as soon as the header has arrived */
	/* Of Sync: a batch of such a client is kept, in case that it must be replayed. */
	bool keeps_batch;
};

/*
 * What other modules do when a run has ended: registry.relay_events, the table of rules/life.
 */
struct relay_events {
	/*
	 * The run of a client is over, and what it has passed was sent. It began with `data`. Must
	 * close no link; so must server_ran. NULL: nothing is to be done.
	 */
	void (*client_ran)(const struct relay_run *run, const uint8_t *data);
	/* As client_ran, for a server that has a record (server_link.watched). */
	void (*server_ran)(struct relay_run *run);
	/* A paired server may be free: see return_if_free(). May close the server. */
	void (*server_answered)(struct server_link *server);
	/* A DRAINING server has sent `length` bytes, which were all judged. May close it. */
	void (*server_drained)(struct server_link *server, size_t length);
	/* A query of our own has ended on this server. May close the server. */
	void (*own_query_done)(struct server_link *server);
	/* Insert the answers that pgusher gives itself to Parse and Close, if they are due. */
	void (*insert_answers)(struct relay_run *run);
	/* As insert_answers, but send them now. Returns false if the client is broken. */
	bool (*send_answers)(struct server_link *server);
	/*
	 * The run of a paired client, which began with `data`, has passed on messages of a
	 * batch: keep them if they may have to be replayed.
	 */
	void (*keep_batch)(struct relay_run *run, const uint8_t *data);
};

/*
 * A paired, idle or waiting client is readable. May close the client, and its server; so may
 * all functions down to relay_receive_rest().
 */
void relay_client_readable(struct client_link *client);

/*
 * Read the client again, beginning with its held bytes: it has a server now, or its server can
 * take more requests.
 */
void relay_client_resume(struct client_link *client);

/* A server that has logged in is readable. */
void relay_server_readable(struct server_link *server);

/*
 * Returns the number of bytes that are missing up to the end of the current message, or of its
 * header; 0 if there is no current message or nothing is missing.
 */
size_t relay_rest(const struct link *link);

/*
 * A link that is to be suspended is readable: receive no more than the rest of the current
 * message, or freeze its stream when nothing is missing.
 */
void relay_receive_rest(struct link *link);

/* For judges: close the link for this failure, after everything before the message was sent. */
enum verdict relay_fail(struct relay_run *run, struct failure why);

/* For judges: as relay_fail(), because such a message cannot have the length in its header. */
enum verdict relay_refuse_header(struct relay_run *run);

/* For judges: send these bytes before the message. They are copied; at most RELAY_INSERTS. */
void relay_insert(struct relay_run *run, const void *data, size_t length);

/*
 * For judges: as relay_insert(), but returns the room for the bytes, to be filled before
 * anything else is inserted.
 */
uint8_t *relay_insert_room(struct relay_run *run, size_t length);

/*
 * For judges: as relay_insert(), but not copied; they must be valid until the end of the run.
 */
void relay_insert_lent(struct relay_run *run, const void *data, size_t length);

/*
 * For judges that let a message pass: do not send its first `length` bytes, which were replaced
 * by inserted bytes. Nothing can be inserted before the message after this.
 */
void relay_skip_front(struct relay_run *run, size_t length);

/*
 * For judges: replace the first `length` bytes of the message by `size` others. Returns the
 * room for these, as relay_insert_room() does.
 */
uint8_t *relay_replace_front(struct relay_run *run, size_t length, size_t size);

/*
 * For judges: pass or drop the message, which is whole, now, so that what is inserted next
 * comes after it. The judge must return RELAY_AGAIN.
 */
void relay_step_over(struct relay_run *run, enum verdict verdict);

/* For judges: returns the body of the message, which is whole. */
static inline const uint8_t *relay_body(const struct relay_run *run, size_t *length)
{
	*length = run->frame.total - 5;
	return run->at + 5;
}

#endif
