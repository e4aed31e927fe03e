/* SPDX-License-Identifier: ISC */
#include "session/login/client_accept.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/link/peer_credentials.h"
#include "session/login/arrival.h"
#include "session/login/client_greeting.h"
#include "session/login/drop_silent_logins.h"
#include "session/login/proxy_greeting.h"

static void log_accepted(const struct client_link *client)
{
	const struct address local = address_local(client->link.stream.fd);
	char from[ADDRESS_TEXT_SIZE], to[ADDRESS_TEXT_SIZE];

	if (client->link.remote.family == AF_UNIX)
		link_log(&client->link, LEVEL_DEBUG, "P: got connection: unix->unix");
	else
		link_log(&client->link, LEVEL_DEBUG, "P: got connection: %s -> %s",
			address_text(&client->link.remote, from), address_text(&local, to));
}

/* Silent clients may be at any worker, since connections are dealt out in turn. */
static bool drop_elsewhere(struct process *process)
{
	struct registry *each;
	bool dropped = false;

	process_stop_others(process);
	EACH_REGISTRY (each, process) {
		dropped = drop_silent_logins_one(each, NULL, CLIENT_REJECTED_FD_LIMIT);
		if (dropped)
			break;
	}
	process_let_others_run(process);
	return dropped;
}

bool client_accept_has_room(void *context)
{
	struct registry *registry = context;
	struct process *process = registry->process;

	while (!descriptors_allow_login(process)) {
		if (!drop_silent_logins_one(registry, NULL, CLIENT_REJECTED_FD_LIMIT) &&
			(process->workers < 2 || !drop_elsewhere(process)))
			return false;
	}
	return true;
}

/* Begin the login of an accepted connection, which is counted already. */
static void begin(struct registry *registry, int fd, const struct sockaddr *from,
	socklen_t length, bool is_unix)
{
	struct client_link *client = slab_take(&registry->clients);
	struct address remote;
	struct ucred peer;

	registry->dealt++;
	if (!client) {
		log_write(LEVEL_ERROR, "no memory for a new connection");
		close(fd);
		limits_give_socket(registry);
		return;
	}
	stream_open(&client->link.stream, registry->loop, fd, &client_greeting_handlers);
	remote = address_of(from, length);
	arrival_enter(registry, client, process_next_id(registry->process), &remote,
		loop_now(registry->loop));
	if (is_unix) {
		peer_credentials_read(client, &peer);
		client->link.remote = (struct address){
			.family = AF_UNIX,
			.port = (uint16_t)registry->process->settings->listen_port,
			.pid = peer.pid,
		};
	}
	if (registry->process->settings->proxy_protocol != PROXY_PROTOCOL_OFF)
		proxy_greeting_begin(client);
	if (log_enabled(LEVEL_DEBUG))
		log_accepted(client);
	sources_take(client);
	client_limits_start(client);
	/* With TCP_DEFER_ACCEPT the first bytes have arrived already: read them now. */
	if (!is_unix && registry->process->settings->tcp_defer_accept &&
		client->link.state == CLIENT_GREETING)
		client->link.stream.handlers->readable(&client->link.stream);
	if (client->link.state != CLIENT_CLOSED && !stream_watch(&client->link.stream))
		client_close_for(client, REASON_NO_MEMORY);
}

/* --- dealing ------------------------------------------------------------------------------ */

/* An accepted connection on its way to a worker. */
struct dealt {
	struct mail mail;
	int fd;
	socklen_t length;
	bool is_unix;
	struct sockaddr_storage from;
};

static void deliver(struct mail *mail, struct loop *loop)
{
	struct dealt *dealt = (struct dealt *)mail;

	begin(loop->owner, dealt->fd, (const struct sockaddr *)&dealt->from, dealt->length,
		dealt->is_unix);
	free(dealt);
}

/* Returns false when out of memory. */
static bool deal(struct registry *to, int fd, const struct sockaddr *from, socklen_t length,
	bool is_unix)
{
	struct dealt *dealt = malloc(sizeof(*dealt));

	if (!dealt || length > sizeof(dealt->from)) {
		free(dealt);
		return false;
	}
	*dealt = (struct dealt){
		.mail = {.deliver = deliver}, .fd = fd, .length = length, .is_unix = is_unix};
	memcpy(&dealt->from, from, length);
	crew_post(to->loop, &dealt->mail);
	return true;
}

/* Connections are dealt out in turn, so that all workers share the work of TLS handshakes. */
void client_accept(
	void *context, int fd, const struct sockaddr *from, socklen_t length, bool is_unix)
{
	struct registry *registry = context;
	struct process *process = registry->process;
	struct registry *to = process->workers > 1
		? process->registries[process->dealt++ % process->workers]
		: registry;

	limits_take_socket(registry);
	if (to == registry || !deal(to, fd, from, length, is_unix))
		begin(registry, fd, from, length, is_unix);
}
