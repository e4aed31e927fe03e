/* SPDX-License-Identifier: ISC */
/*
 * This file has more than 500 lines, because the slices that are sent and the walk over the
 * messages must be one translation unit: the compiler inlines their functions into each other,
 * and without that the hot path is slower.
 */
#include "session/relay/relay.h"

#include <stdio.h>
#include <string.h>

#include "model/statements_in_flight.h"
#include "session/link/close.h"
#include "session/relay/pair.h"

static const struct relay_events *events_of(const struct relay_run *run)
{
	return link_registry(run->from)->relay_events;
}

/* --- slices of bytes that pass ------------------------------------------------------------ */

static void send_pieces(struct relay_run *run);

/* End the open slice at `until`, and add it to the pieces. */
static void close_slice(struct relay_run *run, const uint8_t *until)
{
	if (until == run->slice)
		return;
	if (run->count == RELAY_PIECES)
		send_pieces(run);
	run->pieces[run->count++] = (struct iovec){
		.iov_base = (void *)run->slice,
		.iov_len = (size_t)(until - run->slice),
	};
	run->slice = until;
}

/* Do not send the bytes between `from` and `to`. */
static void skip(struct relay_run *run, const uint8_t *from, const uint8_t *to)
{
	close_slice(run, from);
	run->slice = to;
}

/*
 * Pause the sender if the receiver does not take everything at once. A receiver that is broken
 * is closed at the end of the run, since judges may still read it.
 */
static void send_to(struct relay_run *run, struct link *to)
{
	enum stream_sent sent;

	sent = stream_send(&to->stream, run->pieces, run->count);
	if (sent == STREAM_SENT_NOT) {
		run->broken = true;
		return;
	}
	if (to->kind == LINK_SERVER)
		run->server->fresh = false;
	if (sent == STREAM_SENT_LATER)
		stream_pause(&run->from->stream);
}

/* Send the pieces, if there is a receiver, and remove them from the list in any case. */
static void send_pieces(struct relay_run *run)
{
	struct link *to = run->to;

	if (run->count > 0 && to && !run->broken && stream_is_open(&to->stream))
		send_to(run, to);
	run->count = 0;
	run->inserted = 0;
}

static void add_piece(struct relay_run *run, const void *data, size_t length)
{
	if (run->count == RELAY_PIECES)
		send_pieces(run);
	run->pieces[run->count++] = (struct iovec){(void *)data, length};
}

uint8_t *relay_insert_room(struct relay_run *run, size_t length)
{
	uint8_t *place;

	close_slice(run, run->at);
	if (run->inserted + length > RELAY_INSERTS || run->count == RELAY_PIECES)
		send_pieces(run);
	place = run->inserts + run->inserted;
	run->inserted += (uint32_t)length;
	add_piece(run, place, length);
	return place;
}

void relay_insert(struct relay_run *run, const void *data, size_t length)
{
	memcpy(relay_insert_room(run, length), data, length);
}

void relay_insert_lent(struct relay_run *run, const void *data, size_t length)
{
	close_slice(run, run->at);
	add_piece(run, data, length);
}

void relay_skip_front(struct relay_run *run, size_t length)
{
	skip(run, run->at, run->at + length);
}

uint8_t *relay_replace_front(struct relay_run *run, size_t length, size_t size)
{
	uint8_t *place = relay_insert_room(run, size);

	run->slice = run->at + length;
	return place;
}

void relay_step_over(struct relay_run *run, enum verdict verdict)
{
	const uint8_t *next = run->at + run->frame.total;

	if (verdict == RELAY_DROP)
		skip(run, run->at, next);
	run->at = next;
}

/* --- the walk over the messages ----------------------------------------------------------- */

enum verdict relay_fail(struct relay_run *run, struct failure why)
{
	run->failure = why;
	run->doomed = true;
	return RELAY_STOP;
}

enum verdict relay_refuse_header(struct relay_run *run)
{
	char hex[2 * 8 + 1] = "";
	const size_t left = (size_t)(run->end - run->at);

	if (run->from->kind == LINK_SERVER) {
		relay_fail(run, failure_of(REASON_BAD_PKT_HEADER));
	} else {
		for (size_t i = 0; i < left && i < 8; i++)
			snprintf(hex + 2 * i, 3, "%02x", run->at[i]);
		relay_fail(run, failure_of(REASON_BAD_PACKET_HEADER, hex));
	}
	run->ended = true;
	return RELAY_STOP;
}

/* Pass or drop the rest of a message, as its beginning was. */
static void pass_remaining(struct relay_run *run)
{
	const size_t left = (size_t)(run->end - run->at);
	const uint32_t length =
		run->from->remaining < left ? run->from->remaining : (uint32_t)left;

	run->at += length;
	run->from->remaining -= length;
	if (run->from->discarding)
		skip(run, run->at - length, run->at);
	if (run->from->remaining == 0)
		run->from->discarding = false;
}

/*
 * May this incomplete message be passed on? A short message must be whole first, so that a
 * client that sends it slowly does not occupy a server; of a long one, pkt_buf bytes must have
 * arrived unless the client has a server.
 */
static bool may_start(const struct relay_run *run, const struct relay_rule *rule)
{
	const size_t have = (size_t)(run->end - run->at);

	if (rule->at_once)
		return true;
	if (rule->whole && run->frame.total <= RELAY_WHOLE_MAX)
		return false;
	if (run->from->kind == LINK_SERVER)
		return true;
	return run->frame.total > run->hold_max && (have >= run->hold_max || run->server);
}

/*
 * Pass all messages up to one with a judge. Returns its rule; NULL at the end of the received
 * bytes. Bulk data is processed in this loop.
 */
static const struct relay_rule *next_message(struct relay_run *run)
{
	const struct relay_rule *rules = run->from->rules;

	for (;;) {
		const size_t have = (size_t)(run->end - run->at);
		const struct relay_rule *rule;

		switch (frame_peek(run->at, have, run->max_message, &run->frame)) {
		case FRAME_WHOLE:
			rule = &rules[run->frame.type];
			if (!rule->judge) {
				run->at += run->frame.total;
				continue;
			}
			run->whole = true;
			return rule;
		case FRAME_PARTIAL:
			rule = &rules[run->frame.type];
			if (!may_start(run, rule))
				return NULL;
			run->whole = false;
			if (rule->judge)
				return rule;
			run->from->remaining = (uint32_t)(run->frame.total - have);
			run->at = run->end;
			return NULL;
		case FRAME_SHORT:
			return NULL;
		case FRAME_MALFORMED:
			relay_refuse_header(run);
			return NULL;
		}
	}
}

static void apply(struct relay_run *run, enum verdict verdict)
{
	const uint8_t *next = run->whole ? run->at + run->frame.total : run->end;

	switch (verdict) {
	case RELAY_PASS:
	case RELAY_DROP:
		if (!run->whole)
			run->from->remaining =
				(uint32_t)(run->frame.total - (size_t)(run->end - run->at));
		if (verdict == RELAY_DROP) {
			run->from->discarding = !run->whole;
			skip(run, run->at, next);
		}
		run->at = next;
		break;
	case RELAY_HOLD:
		run->hold = true;
		run->ended = true;
		break;
	case RELAY_STOP:
	case RELAY_MORE:
		run->ended = true;
		break;
	case RELAY_AGAIN:
		break;
	}
}

static void walk(struct relay_run *run)
{
	const struct relay_rule *rule;

	if (run->from->remaining) {
		pass_remaining(run);
		run->start = run->at;
		/* The beginning of the message has shown whether it was requested. */
		if (run->requested)
			run->requested = run->at;
	}
	if (run->from->kind == LINK_SERVER && run->from->remaining == 0 &&
		statements_are_due(run->server))
		events_of(run)->insert_answers(run);
	while ((rule = next_message(run)) != NULL) {
		const enum verdict verdict = rule->judge(run);

		/* The usual case. */
		if (verdict == RELAY_PASS && run->whole) {
			run->at += run->frame.total;
			continue;
		}
		apply(run, verdict);
		if (run->ended)
			break;
	}
	close_slice(run, run->at);
	send_pieces(run);
}

static void begin(struct relay_run *run, struct link *from, const uint8_t *data, size_t length)
{
	const struct settings *settings = link_registry(from)->process->settings;
	const bool is_client = from->kind == LINK_CLIENT;

	struct link *to = from->peer;

	run->from = from;
	run->to = to;
	run->client = client_of(is_client ? from : to);
	run->server = server_of(is_client ? to : from);
	run->loop = from->stream.loop;
	/* The limit must not be smaller than the smallest message. */
	run->max_message = settings->max_packet_size > FRAME_MAX_LEAST
		? settings->max_packet_size
		: FRAME_MAX_LEAST;
	run->hold_max = settings->pkt_buf < RELAY_WHOLE_MAX ? (uint32_t)settings->pkt_buf
							    : RELAY_WHOLE_MAX;
	run->start = run->at = run->slice = data;
	run->end = data + length;
	run->requested = NULL;
	run->ended = run->hold = run->doomed = run->broken = run->own_done = false;
	run->replayable = run->replay_due = false;
	run->count = 0;
	run->inserted = 0;
}

/* Returns the buffer for stream_receive(): there is room before it for the held bytes. */
static uint8_t *receive_area(const struct link *link)
{
	return link->stream.loop->receive + LOOP_RECEIVE_HEADROOM;
}

/* Receive once. Returns as stream_receive(). */
static ssize_t receive(struct link *link)
{
	const ssize_t got =
		stream_receive(&link->stream, receive_area(link), LOOP_RECEIVE_SIZE);

	if (got > 0)
		link->request_time = loop_now(link->stream.loop);
	return got;
}

/* Move the held bytes before the received ones. Returns the start of both. */
static uint8_t *bring_held(struct link *link)
{
	const uint32_t held = link->held_length;
	uint8_t *start = receive_area(link) - held;

	if (held) {
		memcpy(start, link->held, held);
		link_drop_held(link);
	}
	return start;
}

/* A receive of fewer bytes has emptied the socket, whatever the size of its buffer. */
enum { FULL_RECEIVE_LEAST = 2048 };

/*
 * As may_go_on(), for a long receive: it was full if it has filled our buffer or the kernel's.
 * The latter fills again while it is emptied, if the peer has more.
 */
__attribute__((noinline)) static bool goes_on(const struct link *link, ssize_t got, int *rounds)
{
	const struct settings *settings = link_registry(link)->process->settings;

	if (got < LOOP_RECEIVE_SIZE &&
		(settings->tcp_socket_buffer <= 0 || got < settings->tcp_socket_buffer))
		return false;
	return ++*rounds != settings->sbuf_loopcnt && stream_is_open(&link->stream) &&
		!link->stream.paused;
}

/* After a receive: is more data likely, and may it be received in this event? */
static inline bool may_go_on(const struct link *link, ssize_t got, int *rounds)
{
	return got >= FULL_RECEIVE_LEAST && goes_on(link, got, rounds);
}

/*
 * Hold the bytes that the run has not judged. Returns false when out of memory, or when a
 * server would hold too many: the link must be closed then.
 */
static bool keep_rest(struct relay_run *run)
{
	if (run->at == run->end)
		return true;
	/* The held bytes of a server must fit before the received ones: see bring_held(). */
	if (run->from->kind == LINK_SERVER &&
		(size_t)(run->end - run->at) > LOOP_RECEIVE_HEADROOM)
		return false;
	return link_hold(run->from, run->at, (size_t)(run->end - run->at));
}

/* --- from a client ------------------------------------------------------------------------ */

/*
 * Sending to the server failed: close the server. If it has received nothing since it was
 * paired, send the whole run to another server; else the client is closed, too.
 */
static void handle_broken_server(struct relay_run *run)
{
	struct server_link *server = run->server;

	if (!server->fresh) {
		server_close_for(server, REASON_SERVER_CONNECTION_CLOSED);
		return;
	}
	run->client->link.remaining = 0;
	run->client->link.discarding = false;
	pair_unpair(&server->link);
	server_close_for(server, REASON_SERVER_CONNECTION_CLOSED);
	if (!link_hold(run->from, run->start, (size_t)(run->end - run->start))) {
		client_close_for(run->client, REASON_NO_MEMORY);
		return;
	}
	relay_client_resume(run->client);
}

/*
 * Pause reading the client. What was sent together with our SETs is kept until these have
 * succeeded. Returns false when out of memory.
 */
static bool pause_client(const struct relay_run *run)
{
	stream_pause(&run->from->stream);
	if (!run->from->peer || !server_has_gathered(run->server))
		return true;
	buffer_clear(&run->server->kept);
	return buffer_append(&run->server->kept, run->start, (size_t)(run->at - run->start));
}

/* As run_client(); is_replay: `data` is the kept batch. answered: see relay_run. */
static void run_client_as(struct client_link *client, const uint8_t *data, size_t length,
	bool is_replay, uint32_t answered)
{
	struct server_link *server;
	struct relay_run run;

	begin(&run, &client->link, data, length);
	run.is_replay = is_replay;
	run.answered = answered;
	run.batch = NULL;
	run.in_flight = run.server ? run.server->requests.count : 0;
	run.status = run.server ? run.server->transaction_status : READY_IDLE;
	walk(&run);
	if (client->link.state == CLIENT_CLOSED)
		return;
	if (events_of(&run)->client_ran)
		events_of(&run)->client_ran(&run, data);
	if (run.broken) {
		handle_broken_server(&run);
		return;
	}
	/* Count what the client has sent, not what is sent to the server in its place. */
	if (run.to && !is_replay)
		client->link.pool->stats.current.received += (size_t)(run.at - data);
	if (run.doomed) {
		client_close(client, &run.failure);
		return;
	}
	if (!keep_rest(&run) || (run.hold && !pause_client(&run))) {
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	if (!client->link.peer)
		return;
	server = server_of(client->link.peer);
	if (statements_are_due(server) && !events_of(&run)->send_answers(server)) {
		client_close_for(client, REASON_UNEXPECTED_EOF);
		return;
	}
	if (run.replayable || run.batch != run.at || run.server->batch_progress == BATCH_OPEN)
		events_of(&run)->keep_batch(&run, data);
	else
		run.server->kept_requests = 0;
	/* After a message without an answer (Flush) the server may still be free. */
	if (requests_is_empty(&server->requests))
		events_of(&run)->server_answered(server);
}

static void run_client(struct client_link *client, const uint8_t *data, size_t length)
{
	run_client_as(client, data, length, false, 0);
}

static void run_link(struct link *link, const uint8_t *data, size_t length);

/* Run over the held bytes. They are detached from the link, which may hold others meanwhile. */
static void run_held(struct link *link)
{
	struct registry *registry = link_registry(link);
	uint8_t *held = link->held;
	const uint32_t length = link->held_length, capacity = link->held_capacity;

	link->held = NULL;
	link->held_length = link->held_capacity = 0;
	run_link(link, held, length);
	held_free(registry, held, capacity);
}

/* Do the lengths have different numbers of bits? */
static bool has_doubled(uint32_t before, uint32_t now)
{
	return __builtin_clz(before) != __builtin_clz(now);
}

/*
 * Receive into the held bytes: for a message that must be whole and does not fit into the
 * loop's buffer. Its judge is called when it is whole, and whenever the held length has
 * doubled, since the judge may refuse to wait for so long a message. Returns as
 * stream_receive().
 */
static ssize_t receive_held(struct link *link)
{
	const size_t rest = relay_rest(link);
	const size_t size = rest < LOOP_RECEIVE_SIZE ? rest : LOOP_RECEIVE_SIZE;
	const uint32_t before = link->held_length;
	ssize_t got;

	if (!link_make_room(link, size))
		return STREAM_BROKEN;
	got = stream_receive(&link->stream, link->held + link->held_length, size);
	if (got <= 0)
		return got;
	link->request_time = loop_now(link->stream.loop);
	link->held_length += (uint32_t)got;
	if ((size_t)got == rest || has_doubled(before, link->held_length))
		run_held(link);
	return got;
}

/* Does the link hold too many bytes for the room before the received ones? */
static bool holds_much(const struct link *link)
{
	return link->held_length > LOOP_RECEIVE_HEADROOM / 2;
}

void relay_client_readable(struct client_link *client)
{
	struct link *link = &client->link;
	int rounds = 0;
	ssize_t got;

	do {
		const uint8_t *data;
		const bool much = holds_much(link);

		got = much ? receive_held(link) : receive(link);
		if (got <= 0) {
			if (got != STREAM_AGAIN)
				client_close_for(client, REASON_CLIENT_UNEXPECTED_EOF);
			return;
		}
		if (much)
			continue;
		data = bring_held(link);
		run_client(client, data, (size_t)(receive_area(link) + got - data));
	} while (may_go_on(link, got, &rounds));
}

void relay_client_resume(struct client_link *client)
{
	struct loop *loop = client->link.stream.loop;
	const uint32_t length = client->link.held_length;

	stream_resume(&client->link.stream);
	if (length == 0)
		return;
	if (holds_much(&client->link)) {
		run_held(&client->link);
		return;
	}
	/* The loop's buffer is unused: a run that led here has already sent its bytes. */
	memcpy(loop->receive, client->link.held, length);
	link_drop_held(&client->link);
	run_client(client, loop->receive, length);
}

/* --- from a server ------------------------------------------------------------------------ */

/*
 * Resume a client that was paused because too many requests were in flight, or because our SETs
 * ran.
 */
static void resume_client_if_room(struct client_link *client, const struct server_link *server)
{
	if (!client->ring_full || server_stops_client(server) ||
		server->requests.count > REQUESTS_MAX / 2)
		return;
	client->ring_full = false;
	relay_client_resume(client);
}

/* Replay the kept batch: process it again as if the client sent it now. */
static void replay_batch(struct server_link *server)
{
	struct client_link *client = client_of(server->link.peer);
	struct buffer kept = server->kept;

	server->kept = (struct buffer){0};
	client->ring_full = false;
	/* The held bytes follow the batch. */
	if (!buffer_append(&kept, client->link.held, client->link.held_length)) {
		buffer_wipe(&kept);
		client_close_for(client, REASON_NO_MEMORY);
		return;
	}
	link_drop_held(&client->link);
	stream_resume(&client->link.stream);
	run_client_as(client, kept.data, kept.length, true, server->kept_answers);
	buffer_wipe(&kept);
}

static void run_server(struct server_link *server, const uint8_t *data, size_t length)
{
	struct relay_run run;

	begin(&run, &server->link, data, length);
	if (server->transaction_status == 'I' && requests_is_empty(&server->requests))
		run.requested = data;
	walk(&run);
	if (server->link.state == SERVER_CLOSED)
		return;
	if (server->watched)
		events_of(&run)->server_ran(&run);
	if (run.doomed) {
		server_close(server, &run.failure);
		return;
	}
	if (!keep_rest(&run)) {
		server_close_for(server, REASON_NO_MEMORY);
		return;
	}
	if (run.own_done) {
		events_of(&run)->own_query_done(server);
		return;
	}
	if (run.replay_due) {
		replay_batch(server);
		return;
	}
	/* The server has sent something unrequested after its last ReadyForQuery. */
	if (run.requested && run.requested != run.at &&
		(server->link.state == SERVER_PAIRED || server->link.state == SERVER_DRAINING))
		server->dirty = true;
	if (run.broken)
		client_close_for(
			run.client, REASON_UNEXPECTED_EOF); /* unpairs the server as well */
	else if (run.client && run.client->link.state == CLIENT_PAIRED)
		resume_client_if_room(run.client, server);
	if (server->link.state == SERVER_PAIRED)
		events_of(&run)->server_answered(server);
	else if (server->link.state == SERVER_DRAINING)
		events_of(&run)->server_drained(server, length);
}

void relay_server_readable(struct server_link *server)
{
	struct link *link = &server->link;
	int rounds = 0;
	ssize_t got;

	do {
		const uint8_t *data;

		got = receive(link);
		if (got <= 0) {
			if (got != STREAM_AGAIN)
				server_close_for(server, REASON_SERVER_CONN_CRASHED);
			return;
		}
		link->pool->stats.current.sent += (uint64_t)got;
		data = bring_held(link);
		run_server(server, data, (size_t)(receive_area(link) + got - data));
	} while (may_go_on(link, got, &rounds));
}

/* --- suspending --------------------------------------------------------------------------- */

size_t relay_rest(const struct link *link)
{
	struct frame frame;

	if (link->remaining)
		return link->remaining;
	if (link->held_length == 0)
		return 0;
	switch (frame_peek(link->held, link->held_length, UINT32_MAX, &frame)) {
	case FRAME_SHORT:
		return FRAME_HEADER_SIZE - link->held_length;
	case FRAME_PARTIAL:
		return frame.total - link->held_length;
	case FRAME_WHOLE:
	case FRAME_MALFORMED:
		break;
	}
	return 0;
}

static void run_link(struct link *link, const uint8_t *data, size_t length)
{
	if (link->kind == LINK_CLIENT)
		run_client(client_of(link), data, length);
	else
		run_server(server_of(link), data, length);
}

static void close_broken(struct link *link)
{
	if (link->kind == LINK_CLIENT)
		client_close_for(client_of(link), REASON_CLIENT_UNEXPECTED_EOF);
	else
		server_close_for(server_of(link), REASON_SERVER_CONN_CRASHED);
}

void relay_receive_rest(struct link *link)
{
	const size_t rest = relay_rest(link);
	const uint8_t *data;
	ssize_t got;

	if (rest == 0) {
		stream_freeze(&link->stream);
		return;
	}
	if (holds_much(link)) {
		got = receive_held(link);
		if (got <= 0 && got != STREAM_AGAIN)
			close_broken(link);
		return;
	}
	got = stream_receive(&link->stream, receive_area(link),
		rest < LOOP_RECEIVE_SIZE ? rest : LOOP_RECEIVE_SIZE);
	if (got == STREAM_AGAIN)
		return;
	if (got <= 0) {
		close_broken(link);
		return;
	}
	link->request_time = loop_now(link->stream.loop);
	if (link->kind == LINK_SERVER)
		link->pool->stats.current.sent += (uint64_t)got;
	data = bring_held(link);
	run_link(link, data, (size_t)(receive_area(link) + got - data));
}
