/* SPDX-License-Identifier: ISC */
#include "session/takeover/adoption.h"

#include <stdlib.h>
#include <unistd.h>

#include "model/statements_in_flight.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/notify/listening_takeover.h"
#include "session/pool/pairing.h"
#include "session/pool/return_to_pool.h"
#include "session/takeover/adoption_clients.h"
#include "session/takeover/adoption_facts.h"
#include "session/takeover/adoption_links.h"
#include "session/takeover/adoption_servers.h"
#include "session/takeover/adoption_statements.h"
#include "session/takeover/inventory.h"

struct adoption *adoption_new(struct registry *registry)
{
	struct adoption *adoption = calloc(1, sizeof(*adoption));

	if (!adoption)
		return NULL;
	adoption->registry = registry;
	adoption->statements = adoption_statements_new(registry);
	if (adoption->statements)
		return adoption;
	free(adoption);
	return NULL;
}

void adoption_free(struct adoption *adoption)
{
	struct adopted_link *entry, *next;

	if (!adoption)
		return;
	HASH_ITER (by_handle, adoption->entries, entry, next) {
		HASH_DELETE(by_handle, adoption->entries, entry);
		free(entry);
	}
	adoption_statements_free(adoption->statements);
	free(adoption);
}

/* --- records ------------------------------------------------------------------------------ */

void adoption_link(struct adoption *adoption, const struct link_record *record, int fd)
{
	if (fd < 0)
		return;
	if (record->kind == LINK_CLIENT)
		adoption_clients_take(adoption, record, fd);
	else
		adoption_servers_take(adoption, record, fd);
}

void adoption_secret(struct adoption *adoption, const char *database, const char *user,
	const char *secret, const uint8_t client_key[SCRAM_KEY_SIZE])
{
	adoption_facts_secret(adoption->registry, database, user, secret, client_key);
}

bool adoption_record(
	struct adoption *adoption, uint8_t kind, const void *fields, size_t length, int fd)
{
	struct link_record record;
	struct reader reader;
	bool good;

	reader_init(&reader, fields, length);
	if (kind != INVENTORY_CLIENT && kind != INVENTORY_SERVER) {
		if (fd >= 0)
			close(fd);
		if (kind == INVENTORY_STATEMENT)
			return adoption_statements_take(adoption->statements, &reader);
		return adoption_facts_take(adoption->registry, kind, &reader);
	}
	good = fd >= 0 &&
		link_record_read(
			&reader, kind == INVENTORY_CLIENT ? LINK_CLIENT : LINK_SERVER, &record);
	if (good)
		adoption_link(adoption, &record, fd);
	else if (fd >= 0)
		close(fd);
	return good;
}

/* --- joining ------------------------------------------------------------------------------ */

static bool is_paired(const struct link *link)
{
	return link->state ==
		(link->kind == LINK_CLIENT ? (uint8_t)CLIENT_PAIRED : (uint8_t)SERVER_PAIRED);
}

/* Do both records name each other as peers, and can the links be paired? */
static bool can_be_paired(const struct adopted_link *entry, const struct adopted_link *other)
{
	return other && other->peer == entry->handle && is_paired(entry->link) &&
		is_paired(other->link) && entry->link->kind != other->link->kind &&
		entry->link->pool == other->link->pool &&
		link_replication(entry->link) == link_replication(other->link);
}

static void leave_out(struct adoption *adoption, struct adopted_link *entry)
{
	HASH_DELETE(by_handle, adoption->entries, entry);
	if (entry->link->kind == LINK_CLIENT)
		client_close_for(client_of(entry->link), REASON_DISKO_OVER);
	else
		server_close_for(server_of(entry->link), REASON_DISKO_OVER);
	free(entry);
}

/*
 * Give a server its operations in flight. If they are inconsistent, split the pair and mark the
 * server, so that adoption_join() closes both.
 */
static void join_operations(struct adoption *adoption, struct adopted_link *entry)
{
	struct server_link *server = server_of(entry->link);
	struct link *peer = entry->link->peer;

	if (adoption_statements_fill_operations(
		    adoption->statements, server, &entry->operations))
		return;
	if (peer) {
		statements_unpair(server, client_of(peer));
		peer->peer = entry->link->peer = NULL;
	} else {
		entry->peer = entry->handle; /* a peer that is missing: the server is closed */
	}
}

static void join(struct adopted_link *entry, const struct adopted_link *other)
{
	entry->link->peer = other->link;
	if (entry->link->kind == LINK_SERVER)
		backends_note_user(server_of(entry->link), client_of(other->link));
}

void adoption_join(struct adoption *adoption)
{
	struct adopted_link *entry, *next;

	HASH_ITER (by_handle, adoption->entries, entry, next) {
		struct adopted_link *other =
			entry->peer ? adoption_links_find(adoption, entry->peer) : NULL;

		if (!entry->peer && !is_paired(entry->link))
			continue;
		if (can_be_paired(entry, other))
			join(entry, other);
	}
	HASH_ITER (by_handle, adoption->entries, entry, next) {
		if (entry->link->kind == LINK_SERVER)
			join_operations(adoption, entry);
	}
	/* Close links without their peer last: every pair has been joined or split by now. */
	HASH_ITER (by_handle, adoption->entries, entry, next) {
		if ((entry->peer || is_paired(entry->link)) && !entry->link->peer)
			leave_out(adoption, entry);
	}
	adoption_statements_free(adoption->statements);
	adoption->statements = NULL;
}

/* --- activation --------------------------------------------------------------------------- */

/* The old process has left the question to this one, or the SETs for a client that it keeps. */
static void continue_server(struct server_link *server)
{
	if (server->suspected)
		return_if_free(server);
	else if (server->pins && server->link.peer && server_is_clean(server))
		pairing_sync(client_of(server->link.peer), server);
}

static void activate(struct adopted_link *entry)
{
	struct link *link = entry->link;

	if (link->kind == LINK_CLIENT && link->state == CLIENT_CLOSED)
		return;
	if (link->kind == LINK_SERVER && link->state == SERVER_CLOSED)
		return;
	if (!stream_owe(&link->stream, entry->backlog.at, entry->backlog.length))
		log_write(LEVEL_ERROR, "no memory for data that a connection has not sent yet");
	stream_attach(&link->stream);
	if (link->kind == LINK_CLIENT)
		client_limits_start(client_of(link));
	else
		continue_server(server_of(link));
	if (link->pool)
		pool_needs_work(link->pool);
}

void adoption_activate(struct adoption *adoption)
{
	struct adopted_link *entry, *next;
	struct pool *pool;

	HASH_ITER (by_handle, adoption->entries, entry, next)
		activate(entry);
	TAILQ_FOREACH (pool, &adoption->registry->process->directory.pools, in_directory)
		listening_takeover_end(pool);
}
