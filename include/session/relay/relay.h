/* SPDX-License-Identifier: ISC */
/*
 * The hot path: moves messages between a client and a server.
 *
 * One readable event is one run: receive once, judge the messages that mean something to us, send
 * what passes in one call, and only then settle what follows from it (release, hand on, close).
 * Most messages mean nothing to us and pass by length. What a message means is one row of the
 * table that the link points at; the tables are declared in session/relay/relay_rules.h.
 *
 * Nothing in here knows databases, users or authentication.
 */
#ifndef PGUSHER_SESSION_RELAY_RELAY_H
#define PGUSHER_SESSION_RELAY_RELAY_H

#include <sys/uio.h>

#include "model/registry.h"
#include "wire/frame.h"

enum {
	/* Slices that one send gathers; a run with more of them sends early. */
	RELAY_PIECES = 64,
	/* A message that has to be whole (ParameterStatus) may be this long. */
	RELAY_WHOLE_MAX = 64 * 1024,
	/* Bytes of ours that one send has among those that pass; beyond it is sent early. */
	RELAY_INSERTS = 1024,
	/* So many bytes behind what has been given room may be written as well: see bind_named(). */
	RELAY_SPARE = 32,
	/* What goes with our SETs, and is kept until these have succeeded, may be this long. */
	RELAY_KEPT_MAX = 16 * 1024,
};

enum verdict {
	RELAY_PASS, /* to the peer */
	RELAY_DROP, /* to nobody */
	RELAY_HOLD, /* keep it and what follows until the run is taken up again */
	RELAY_STOP, /* the link is closed or closing: forget the rest */
	RELAY_AGAIN, /* judge it once more: the link's rules have changed, or `at` has moved */
	RELAY_MORE, /* too little of it is there: keep it, and judge it when more has come */
};

struct relay_run {
	struct link *from;
	struct link *to; /* its peer, even if they have parted since; NULL: it has none */
	struct client_link *client; /* NULL: a server that nobody uses */
	struct server_link *server; /* NULL: a client that has none yet */
	struct loop *loop;
	uint32_t max_message; /* max_packet_size */
	uint32_t hold_max; /* pkt_buf: a shorter message is passed on only when it is whole */
	const uint8_t *start; /* of the run's first message */
	const uint8_t *at, *end; /* what is still to be judged */
	const uint8_t *slice; /* start of the bytes that pass and are not in pieces yet */
	const uint8_t
		*quiet; /* a server's: up to here it said nothing that nobody had asked for */
	struct frame frame; /* the message at `at` */
	bool whole; /* all of it is there */
	bool ended; /* leave the loop */
	bool hold; /* keep the rest, and do not read on */
	bool own_done; /* a query of our own has ended: see server_own_done() */
	bool broken; /* the receiver took nothing more: to be dealt with when the run is over */
	char status; /* a client's: of its server's transaction when it began */
	bool keeps; /* it has a message that may have to be said again: see session/statements/replay */
	bool repeats; /* it is such a batch, said again */
	uint32_t given; /* so many of its first messages have had their answers, from us */
	bool fails; /* a server's: what it answers must be said again, see session/statements/replay */
	uint32_t before; /* a client's: so much did its server owe when it began */
	const uint8_t *batch; /* behind its last Sync or Query; NULL: it has had none */
	const uint8_t *last_batch; /* if there is one: the same, of what that Sync has ended */
	struct failure failure; /* valid if doomed */
	bool doomed; /* close `from` for this failure when everything before it has been sent */
	int count; /* of pieces */
	struct iovec pieces[RELAY_PIECES];
	uint32_t inserted; /* bytes in use of inserts */
	uint8_t inserts[RELAY_INSERTS + RELAY_SPARE]; /* what `pieces` have of ours */
};

/* What one kind of message means to us. */
struct relay_rule {
	enum verdict (*judge)(struct relay_run *run); /* NULL: it passes */
	bool whole; /* judge it only when all of it is there */
	bool at_once; /* judge it when its header is there: nobody will wait for the rest */
};

/* What other modules do when a run has ended: registry.relay_events, the table of rules/life. */
struct relay_events {
	/* A paired server may be free: see return_if_free(). It may be closed by this. */
	void (*server_answered)(struct server_link *server);
	/* A DRAINING server has sent so many bytes, all of which have been judged. */
	void (*server_drained)(struct server_link *server, size_t length);
	/* A query of our own has ended on this server, which may be closed by this. */
	void (*own_query_done)(struct server_link *server);
	/* Insert the answers to prepared statements that pgusher gives itself, now that they are due. */
	void (*insert_answers)(struct relay_run *run);
	/* Send them at once to the client of the server. Returns false if it is broken. */
	bool (*send_answers)(struct server_link *server);
	/*
	 * The run of a paired client, which began with `data`, has passed on messages of a batch
	 * that may have to be replayed: keep them.
	 */
	void (*keep_batch)(struct relay_run *run, const uint8_t *data);
};

/* A paired, idle or waiting client is readable. */
void relay_client_readable(struct client_link *client);

/* What a client holds may go on: it has a server, or its server can take more requests. */
void relay_client_resume(struct client_link *client);

/* A server that has logged in is readable. */
void relay_server_readable(struct server_link *server);

/* Bytes up to the end of the message that is under way; 0: none is, or it is all there. */
size_t relay_rest(const struct link *link);

/*
 * A link that is to come to rest is readable: receive no more than the rest of the message that
 * is under way, and freeze its stream when there is none.
 */
void relay_receive_rest(struct link *link);

/* For judges: close the link for this reason after all before the message has been sent. */
enum verdict relay_fail(struct relay_run *run, struct failure why);

/* For judges: the same, because its length is none that such a message can have. */
enum verdict relay_refuse_header(struct relay_run *run);

/*
 * For judges: these bytes go to the receiver before the message. They are copied, RELAY_INSERTS
 * at most; or lent, until the end of the turn.
 */
void relay_insert(struct relay_run *run, const void *data, size_t length);
uint8_t *relay_insert_room(struct relay_run *run, size_t length); /* to be filled at once */
void relay_insert_lent(struct relay_run *run, const void *data, size_t length);

/*
 * For judges that let a message pass: not its first `length` bytes, for which others have been
 * inserted. Nothing can be inserted before it any more.
 */
void relay_skip_front(struct relay_run *run, size_t length);

/* Both: room for `size` bytes in their place, to be filled at once. */
uint8_t *relay_replace_front(struct relay_run *run, size_t length, size_t size);

/*
 * For judges: take the message, which is whole, as passed or dropped, so that what is inserted
 * from here on comes behind it. To be followed by RELAY_AGAIN.
 */
void relay_step_over(struct relay_run *run, enum verdict verdict);

/* For judges: the message's body, which is whole. */
static inline const uint8_t *relay_body(const struct relay_run *run, size_t *length)
{
	*length = run->frame.total - 5;
	return run->at + 5;
}

#endif
