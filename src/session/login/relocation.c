/* SPDX-License-Identifier: ISC */
#include "session/login/relocation.h"

#include <stdlib.h>
#include <string.h>

#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/login/arrival.h"
#include "session/login/client_login.h"
#include "session/login/drop_silent_logins.h"

/* A client between two workers. */
struct relocation {
	struct mail mail;
	unsigned round; /* so many other workers it passes on its way: see goes_round() */
	const struct relocation_end *end;
	struct stream stream; /* away: see stream_leave() */
	uint64_t id;
	struct address remote;
	usec_t connect_time, request_time;
	enum client_proxy proxy;
	bool counted_by_address, went_round;
	size_t length;
	uint8_t bytes[]; /* received and not handled yet */
};

/* --- where to ----------------------------------------------------------------------------- */

static struct registry *home_of_login(
	struct process *process, const uint8_t *message, size_t total)
{
	struct startup_login wanted;

	return startup_read(message, total, &wanted) == STARTUP_GOOD
		? directory_home_of(process, wanted.database)
		: NULL;
}

static struct registry *home_of_key(
	struct process *process, const uint8_t *message, size_t total)
{
	size_t length;
	const uint8_t *key = startup_cancel_key(message, total, &length);
	const struct loop *loop =
		key ? cancel_keys_find_loop(&process->cancel_keys, key, length) : NULL;

	/* The first worker knows which keys are of peers. */
	return loop ? loop->owner : process->registries[0];
}

/* Returns the registry that the message concerns; NULL: it is refused wherever it is handled. */
static struct registry *home_of(
	struct process *process, enum startup_kind kind, const uint8_t *message, size_t total)
{
	switch (kind) {
	case STARTUP_LOGIN:
		return home_of_login(process, message, total);
	case STARTUP_CANCEL:
		return home_of_key(process, message, total);
	case STARTUP_PEER_QUESTION:
		return process->registries[0];
	case STARTUP_INCOMPLETE:
	case STARTUP_MALFORMED:
	case STARTUP_SSL_REQUEST:
	case STARTUP_GSSENC_REQUEST:
	case STARTUP_PROTOCOL_2:
		break;
	}
	return NULL;
}

/*
 * With max_client_conn reached, another worker may be about to close a client that has disconnected
 * before this one came, or may have a login that is silent. The connection passes all workers then, and
 * comes to its home when each has handled what had arrived there; after that the limit counts. One
 * worker handles disconnections before new connections by itself. No silent client is closed for one
 * that is refused all the same, or for the console, which has no limit.
 */
static bool goes_round(const struct registry *registry, const struct client_link *client,
	const uint8_t *message, size_t total)
{
	struct startup_login wanted;

	return !client->went_round && !limits_allow_client(registry, false) &&
		!client_login_is_barred(client) &&
		startup_read(message, total, &wanted) == STARTUP_GOOD &&
		!client_login_names_console(registry, wanted.database);
}

static struct registry *after(const struct registry *registry)
{
	const struct process *process = registry->process;

	return process->registries[(registry->number + 1) % process->workers];
}

/* --- arriving ----------------------------------------------------------------------------- */

/* No memory for the client: it is closed without a word, as one that could not be accepted. */
static void drop(struct relocation *moved, struct registry *registry)
{
	log_write(LEVEL_ERROR, "no memory for a new connection");
	stream_close(&moved->stream);
	limits_give_socket(registry);
	sources_forget(registry->process, &moved->remote, moved->counted_by_address);
}

static struct client_link *arrive(const struct relocation *moved, struct registry *registry)
{
	struct client_link *client = slab_take(&registry->clients);

	if (!client)
		return NULL;
	client->link.stream = moved->stream;
	if (!stream_join(&client->link.stream, registry->loop, moved->end->handlers)) {
		slab_give(&registry->clients, client);
		return NULL;
	}
	arrival_enter(registry, client, moved->id, &moved->remote, moved->connect_time);
	client->link.request_time = moved->request_time;
	client->proxy = moved->proxy;
	client->counted_by_address = moved->counted_by_address;
	client->went_round = moved->went_round;
	registry->moved_in++;
	client_limits_start(client);
	return client;
}

/* On its round: silent logins of this worker are closed to make room, as at its home later. */
static void pass_on(struct relocation *moved, struct registry *registry)
{
	while (!limits_allow_client(registry, false) &&
		drop_silent_logins_one(registry, NULL, CLIENT_REJECTED_MAX_CLIENT_CONN))
		;
	moved->round--;
	crew_post(after(registry)->loop, &moved->mail);
}

static void deliver(struct mail *mail, struct loop *loop)
{
	struct relocation *moved = (struct relocation *)mail;
	struct client_link *client;

	if (moved->round > 0) {
		pass_on(moved, loop->owner);
		return;
	}
	client = arrive(moved, loop->owner);
	if (client)
		moved->end->go_on(client, moved->bytes, moved->length);
	else
		drop(moved, loop->owner);
	explicit_bzero(moved->bytes, moved->length);
	free(moved);
}

/* --- leaving ------------------------------------------------------------------------------ */

bool relocation_begin(struct client_link *client, enum startup_kind kind,
	const uint8_t *message, size_t total, size_t length, const struct relocation_end *end)
{
	struct registry *registry = link_registry(&client->link);
	struct process *process = registry->process;
	struct registry *home;
	struct relocation *moved;
	bool round;

	if (process->workers < 2 || client->link.state != CLIENT_GREETING)
		return false;
	home = home_of(process, kind, message, total);
	round = home && kind == STARTUP_LOGIN && goes_round(registry, client, message, total);
	if (!home || (home == registry && !round))
		return false;
	moved = malloc(sizeof(*moved) + length);
	if (!moved) {
		client_close_for(client, REASON_NO_MEMORY);
		return true;
	}
	stream_leave(&client->link.stream);
	*moved = (struct relocation){
		.mail = {.deliver = deliver},
		.round = round ? process->workers - 1 : 0,
		.went_round = round || client->went_round,
		.end = end,
		.stream = client->link.stream,
		.id = client->link.id,
		.remote = client->link.remote,
		.connect_time = client->link.connect_time,
		.request_time = client->link.request_time,
		.proxy = client->proxy,
		.counted_by_address = client->counted_by_address,
		.length = length,
	};
	memcpy(moved->bytes, message, length);
	/* The link stays until the end of the turn, with a stream that is closed. */
	client->link.stream = (struct stream){.loop = registry->loop, .fd = -1};
	client_leave(client);
	registry->moved_out++;
	crew_post((round ? after(home) : home)->loop, &moved->mail);
	return true;
}
