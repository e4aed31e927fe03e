/* SPDX-License-Identifier: ISC */
#include "model/backends.h"

#include <stdlib.h>
#include <string.h>

#include "model/registry.h"

/* What another client has caused before has arrived after this time. */
#define SETTLED (10 * USEC_PER_SEC)

/* The first four bytes of a cancel key. Protocol: "Message Formats", BackendKeyData. */
static uint32_t pid_in(const uint8_t *key)
{
	return (uint32_t)key[0] << 24 | (uint32_t)key[1] << 16 | (uint32_t)key[2] << 8 | key[3];
}

static struct server_link **slot_of(const struct server_link *server, uint32_t pid)
{
	return &link_registry(&server->link)->backends.slots[pid % BACKENDS_SLOTS];
}

void backends_add(struct server_link *server)
{
	struct server_link **slot = slot_of(server, pid_in(server->cancel_key));

	server->next_backend = *slot;
	*slot = server;
}

void backends_remove(struct server_link *server)
{
	struct server_link **at;

	if (!server->cancel_key)
		return;
	at = slot_of(server, pid_in(server->cancel_key));
	while (*at && *at != server)
		at = &(*at)->next_backend;
	if (*at)
		*at = server->next_backend;
}

void server_drop_key(struct server_link *server)
{
	backends_remove(server);
	if (!server->cancel_key)
		return;
	explicit_bzero(server->cancel_key, server->cancel_key_length);
	free(server->cancel_key);
	server->cancel_key = NULL;
}

static bool is_same_address(const struct server_link *a, const struct server_link *b)
{
	return a->where_length == b->where_length &&
		memcmp(&a->where, &b->where, a->where_length) == 0;
}

static bool is_certain(const struct server_link *server)
{
	return server->others_until == 0 ||
		loop_now(server->link.stream.loop) - server->others_until > SETTLED;
}

uint32_t backends_client_pid(const struct server_link *server, uint32_t pid)
{
	const struct server_link *each;

	for (each = *slot_of(server, pid); each; each = each->next_backend) {
		if (pid_in(each->cancel_key) == pid && is_same_address(each, server))
			return is_certain(each) ? pid_in(each->user_key) : 0;
	}
	return 0;
}
