/* SPDX-License-Identifier: ISC */
#include "session/pool/peer_discovery.h"

#include <stdlib.h>
#include <string.h>

#include "config/tcp_settings.h"
#include "model/peer.h"
#include "net/service_name.h"
#include "session/link/close.h"
#include "session/pool/peering.h"
#include "wire/peer_question.h"

enum {
	/* Questions in progress at the same time. */
	QUESTIONS_MOST = 16,
};

/* How long a peer may take to accept the connection and to answer. */
#define ANSWER_LIMIT (3 * USEC_PER_SEC)

/* The name is looked up no more often, whatever dns_max_ttl, and whoever asks us. */
#define SHORTEST_PERIOD USEC_PER_SEC

/* One address of the name. */
struct neighbor {
	struct stream stream; /* of the question in progress; closed: there is none */
	TAILQ_ENTRY(neighbor) entry;
	struct peer_discovery *discovery;
	struct deadline limit;
	struct sockaddr_storage where;
	socklen_t length;
	struct address address;
	unsigned id; /* its last answer; 0: none yet */
	bool is_self; /* it is our own address */
	bool is_listed; /* the last look-up has found it */
	bool is_due; /* it is to be asked */
	uint8_t nonce[PEER_NONCE_SIZE]; /* of the question */
	uint8_t answer[PEER_ANSWER_SIZE];
	size_t received; /* bytes of the answer */
};

TAILQ_HEAD(neighbor_list, neighbor);

struct peer_discovery {
	struct registry *registry;
	struct service_name service;
	uint16_t port;
	struct resolver_query query;
	struct deadline next; /* when the name is looked up again */
	usec_t looked_up; /* when it was last */
	bool is_failing; /* the last look-up has failed, which is logged once */
	struct neighbor_list neighbors;
	unsigned questions; /* in progress */
	struct found_peers found;
};

static void ask_due(struct peer_discovery *discovery);

/* --- our id ------------------------------------------------------------------------------- */

static bool is_taken(const struct peer_discovery *discovery, unsigned id)
{
	const struct neighbor *neighbor;

	TAILQ_FOREACH (neighbor, &discovery->neighbors, entry) {
		if (neighbor->id == id)
			return true;
	}
	return false;
}

static void draw_id(struct peer_discovery *discovery)
{
	struct process *process = discovery->registry->process;
	unsigned id;

	do {
		id = 1 +
			(unsigned)random_below(&discovery->registry->loop->random, PEER_ID_MAX);
	} while (is_taken(discovery, id) || id == process_peer_id(process));
	cancel_keys_set_peer(&process->cancel_keys, (uint16_t)id);
	log_write(LEVEL_LOG, "peers: this process has drawn peer_id %u", id);
}

/* Another process has our id: keys with it must not be issued any more. */
static void resolve_conflict(struct peer_discovery *discovery, const struct neighbor *neighbor)
{
	const struct process *process = discovery->registry->process;
	char text[ADDRESS_TEXT_SIZE];

	log_write(LEVEL_WARNING, "peers: %s has our peer_id %u too",
		address_text(&neighbor->address, text), neighbor->id);
	if (process->settings->peer_id == 0)
		draw_id(discovery);
}

void peer_discovery_keep_id(struct registry *registry, uint64_t id)
{
	if (registry->process->discovery && registry->process->settings->peer_id == 0 &&
		id > 0 && id <= PEER_ID_MAX)
		cancel_keys_set_peer(&registry->process->cancel_keys, (uint16_t)id);
}

/* --- what was found ----------------------------------------------------------------------- */

/* Let cancel requests be forwarded to the peers that are known now. */
static void publish(struct peer_discovery *discovery)
{
	struct registry *registry = discovery->registry;
	struct found_peers found = {.count = 0};
	const struct neighbor *neighbor;

	TAILQ_FOREACH (neighbor, &discovery->neighbors, entry) {
		if (neighbor->id > 0 && !neighbor->is_self &&
			neighbor->id != process_peer_id(registry->process))
			found_peers_add(&found, neighbor->id, &neighbor->address);
	}
	if (found_peers_equal(&found, &discovery->found))
		return;
	discovery->found.count = 0;
	for (unsigned i = 0; i < found.count; i++)
		found_peers_add(
			&discovery->found, found.list[i].config.id, &found.list[i].address);
	peering_apply(registry);
}

/* --- questions ---------------------------------------------------------------------------- */

static void end_question(struct neighbor *neighbor)
{
	if (!stream_is_open(&neighbor->stream))
		return;
	stream_close(&neighbor->stream);
	wheel_remove(&neighbor->discovery->registry->loop->wheel, &neighbor->limit);
	neighbor->discovery->questions--;
}

static void take_answer(struct neighbor *neighbor)
{
	struct peer_discovery *discovery = neighbor->discovery;
	const unsigned id = peer_answer_read(neighbor->answer);
	const bool is_new = id > 0 && id != neighbor->id;
	char text[ADDRESS_TEXT_SIZE];

	if (id == 0) {
		log_write(LEVEL_DEBUG, "peers: %s is no peer",
			address_text(&neighbor->address, text));
		return;
	}
	neighbor->id = id;
	neighbor->is_self = false;
	if (is_new)
		log_write(LEVEL_LOG, "peers: %s has peer_id %u",
			address_text(&neighbor->address, text), id);
	if (is_new && id == process_peer_id(discovery->registry->process))
		resolve_conflict(discovery, neighbor);
	publish(discovery);
}

static void on_readable(struct stream *stream)
{
	struct neighbor *neighbor = (struct neighbor *)stream;
	struct peer_discovery *discovery = neighbor->discovery;
	const ssize_t got = stream_receive(stream, neighbor->answer + neighbor->received,
		sizeof(neighbor->answer) - neighbor->received);

	if (got == STREAM_AGAIN)
		return;
	if (got > 0) {
		neighbor->received += (size_t)got;
		if (neighbor->received < sizeof(neighbor->answer))
			return;
	}
	end_question(neighbor);
	if (got > 0)
		take_answer(neighbor);
	ask_due(discovery);
}

static void on_connected(struct stream *stream, int error)
{
	struct neighbor *neighbor = (struct neighbor *)stream;
	struct buffer question;
	bool sent = false;

	if (error == 0) {
		buffer_init(&question);
		peer_question_write(&question, neighbor->nonce);
		sent = !question.failed &&
			stream_send_bytes(stream, question.data, question.length) ==
				STREAM_SENT_ALL;
		buffer_free(&question);
	}
	if (sent)
		return;
	end_question(neighbor);
	ask_due(neighbor->discovery);
}

static void on_drained(struct stream *stream)
{
	(void)stream;
}

static const struct stream_handlers handlers = {
	.readable = on_readable,
	.drained = on_drained,
	.connected = on_connected,
};

static void on_limit(struct deadline *deadline)
{
	struct neighbor *neighbor =
		(struct neighbor *)((char *)deadline - offsetof(struct neighbor, limit));

	end_question(neighbor);
	ask_due(neighbor->discovery);
}

/* An address that cannot even be tried is asked in the next round. */
static void ask(struct neighbor *neighbor)
{
	struct peer_discovery *discovery = neighbor->discovery;
	struct loop *loop = discovery->registry->loop;
	const struct tcp_options options =
		tcp_settings_options(discovery->registry->process->settings);

	neighbor->is_due = false;
	neighbor->received = 0;
	random_fill(&loop->random, neighbor->nonce, sizeof(neighbor->nonce));
	if (!stream_connect(&neighbor->stream, loop, (struct sockaddr *)&neighbor->where,
		    neighbor->length, &options, &handlers))
		return;
	discovery->questions++;
	wheel_set(&loop->wheel, &neighbor->limit, loop_now(loop) + ANSWER_LIMIT);
}

static void ask_due(struct peer_discovery *discovery)
{
	struct neighbor *neighbor;

	TAILQ_FOREACH (neighbor, &discovery->neighbors, entry) {
		if (discovery->questions >= QUESTIONS_MOST)
			return;
		if (neighbor->is_due && !stream_is_open(&neighbor->stream))
			ask(neighbor);
	}
}

/* --- addresses ---------------------------------------------------------------------------- */

static struct neighbor *find(const struct peer_discovery *discovery, struct address address)
{
	struct neighbor *neighbor;

	address.port = discovery->port;
	TAILQ_FOREACH (neighbor, &discovery->neighbors, entry) {
		if (address_equal(&neighbor->address, &address))
			return neighbor;
	}
	return NULL;
}

static struct neighbor *add(
	struct peer_discovery *discovery, const struct sockaddr *where, socklen_t length)
{
	struct neighbor *neighbor = calloc(1, sizeof(*neighbor));

	if (!neighbor)
		return NULL;
	neighbor->discovery = discovery;
	neighbor->stream.fd = -1;
	neighbor->limit.expire = on_limit;
	memcpy(&neighbor->where, where, length);
	neighbor->length = length;
	if (where->sa_family == AF_INET)
		((struct sockaddr_in *)&neighbor->where)->sin_port = htons(discovery->port);
	else
		((struct sockaddr_in6 *)&neighbor->where)->sin6_port = htons(discovery->port);
	neighbor->address = address_of((struct sockaddr *)&neighbor->where, length);
	TAILQ_INSERT_TAIL(&discovery->neighbors, neighbor, entry);
	return neighbor;
}

static void forget(struct neighbor *neighbor)
{
	end_question(neighbor);
	TAILQ_REMOVE(&neighbor->discovery->neighbors, neighbor, entry);
	free(neighbor);
}

static void drop_unlisted(struct peer_discovery *discovery)
{
	struct neighbor *neighbor, *next;
	char text[ADDRESS_TEXT_SIZE];

	TAILQ_FOREACH_SAFE (neighbor, &discovery->neighbors, entry, next) {
		if (neighbor->is_listed)
			continue;
		log_write(LEVEL_LOG, "peers: %s is not an address of %s any more",
			address_text(&neighbor->address, text), discovery->service.host);
		forget(neighbor);
	}
}

static void take_addresses(
	struct peer_discovery *discovery, const struct resolver_name *addresses)
{
	const struct sockaddr *where;
	struct neighbor *neighbor;
	socklen_t length;

	TAILQ_FOREACH (neighbor, &discovery->neighbors, entry)
		neighbor->is_listed = false;
	for (size_t i = 0; (where = resolver_row_address(addresses, i, &length)) != NULL; i++) {
		neighbor = find(discovery, address_of(where, length));
		if (!neighbor)
			neighbor = add(discovery, where, length);
		/* Its process may be another one than in the last round. */
		if (neighbor)
			neighbor->is_listed = neighbor->is_due = true;
	}
	drop_unlisted(discovery);
}

static void note_failure(struct peer_discovery *discovery, bool failed)
{
	if (failed && !discovery->is_failing)
		log_write(LEVEL_WARNING, "peers: %s has no addresses now, %u peers are kept",
			discovery->service.host, discovery->found.count);
	discovery->is_failing = failed;
}

static void on_addresses(struct resolver_query *query, const struct sockaddr *address,
	socklen_t length, int status)
{
	struct peer_discovery *discovery = (struct peer_discovery *)((char *)query -
		offsetof(struct peer_discovery, query));
	const struct resolver_name *addresses = status == RESOLVER_FOUND
		? resolver_find(discovery->registry->resolver, discovery->service.host)
		: NULL;

	(void)address;
	(void)length;
	note_failure(discovery, !addresses);
	if (addresses)
		take_addresses(discovery, addresses);
	publish(discovery);
	ask_due(discovery);
}

static void look_up(struct deadline *deadline)
{
	struct peer_discovery *discovery = (struct peer_discovery *)((char *)deadline -
		offsetof(struct peer_discovery, next));
	struct registry *registry = discovery->registry;
	const usec_t now = loop_now(registry->loop);
	const usec_t period = registry->process->settings->dns_max_ttl;
	const char *host = discovery->service.host;

	discovery->looked_up = now;
	wheel_set(&registry->loop->wheel, deadline,
		now + (period > SHORTEST_PERIOD ? period : SHORTEST_PERIOD));
	if (resolver_query_is_waiting(&discovery->query))
		return;
	resolver_forget(registry->resolver, host, strlen(host));
	resolver_ask(registry->resolver, &discovery->query, host, 0, on_addresses);
}

/* --- questions of others ------------------------------------------------------------------ */

/* Is this one of our own questions? Then its address is our own. */
static bool recognize(struct peer_discovery *discovery, const uint8_t *nonce)
{
	struct neighbor *neighbor;

	TAILQ_FOREACH (neighbor, &discovery->neighbors, entry) {
		if (!stream_is_open(&neighbor->stream) ||
			memcmp(neighbor->nonce, nonce, PEER_NONCE_SIZE) != 0)
			continue;
		neighbor->is_self = true;
		neighbor->id = 0;
		end_question(neighbor);
		publish(discovery);
		return true;
	}
	return false;
}

/* A peer that is not known yet has perhaps just started: look soon. */
static void look_soon(struct peer_discovery *discovery)
{
	struct wheel *wheel = &discovery->registry->loop->wheel;
	const usec_t soon = discovery->looked_up + SHORTEST_PERIOD;

	if (discovery->next.due > soon) {
		wheel_remove(wheel, &discovery->next);
		wheel_set(wheel, &discovery->next, soon);
	}
}

bool peer_discovery_answer(struct client_link *client, const uint8_t *message, size_t total)
{
	const struct process *process = link_registry(&client->link)->process;
	const uint8_t *nonce = peer_question_nonce(message, total);
	struct buffer answer;

	if (!process->discovery || !nonce)
		return false;
	if (!recognize(process->discovery, nonce)) {
		buffer_init(&answer);
		peer_answer_write(&answer, process_peer_id(process));
		link_send(&client->link, &answer);
		if (!find(process->discovery, client->link.remote))
			look_soon(process->discovery);
	}
	client_close_for(client, REASON_PEER_ANSWERED);
	return true;
}

/* --- begin and end ------------------------------------------------------------------------ */

static void end(struct registry *registry)
{
	struct peer_discovery *discovery = registry->process->discovery;
	struct neighbor *neighbor;

	resolver_cancel(&discovery->query);
	wheel_remove(&registry->loop->wheel, &discovery->next);
	while ((neighbor = TAILQ_FIRST(&discovery->neighbors)) != NULL)
		forget(neighbor);
	registry->process->discovery = NULL;
	registry->process->found_peers = NULL;
	free(discovery);
}

void peer_discovery_end(struct registry *registry)
{
	if (registry->process->discovery)
		end(registry);
}

static bool begin(struct registry *registry, const struct service_name *service, uint16_t port)
{
	struct peer_discovery *discovery = calloc(1, sizeof(*discovery));

	if (!discovery)
		return false;
	discovery->registry = registry;
	discovery->service = *service;
	discovery->port = port;
	TAILQ_INIT(&discovery->neighbors);
	discovery->next.expire = look_up;
	wheel_set(&registry->loop->wheel, &discovery->next, loop_now(registry->loop));
	registry->process->discovery = discovery;
	registry->process->found_peers = &discovery->found;
	return true;
}

static bool is_same(const struct peer_discovery *discovery, const struct service_name *service,
	uint16_t port)
{
	return strcmp(discovery->service.host, service->host) == 0 && discovery->port == port;
}

bool peer_discovery_follow(struct registry *registry)
{
	struct process *process = registry->process;
	const struct settings *settings = process->settings;
	const uint16_t drawn = process->discovery ? process->cancel_keys.peer_id : 0;
	struct service_name service;
	const bool wanted = service_name_read(settings->peers, &service);
	const uint16_t port =
		wanted && service.port > 0 ? service.port : (uint16_t)settings->listen_port;

	if (process->discovery && !(wanted && is_same(process->discovery, &service, port)))
		end(registry);
	if (wanted && !process->discovery && !begin(registry, &service, port))
		return false;
	cancel_keys_set_peer(&process->cancel_keys,
		settings->peer_id > 0 ? (uint16_t)settings->peer_id : drawn);
	if (!wanted && settings->peer_id == 0)
		cancel_keys_set_peer(&process->cancel_keys, 0);
	else if (process_peer_id(process) == 0)
		draw_id(process->discovery);
	return true;
}
