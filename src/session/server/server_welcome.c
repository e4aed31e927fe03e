/* SPDX-License-Identifier: ISC */
#include "session/server/server_welcome.h"

#include <stdlib.h>
#include <string.h>

#include "session/link/close.h"
#include "session/parameters/welcome_message.h"
#include "session/server/host_report.h"
#include "session/server/server_login_state.h"
#include "wire/message.h"
#include "wire/parameter_values.h"
#include "wire/report.h"
#include "wire/writer.h"

enum {
	/* Limit for all ParameterStatus messages of a login, in bytes. */
	WELCOME_MAX = 64 * 1024,
};

void server_welcome_take_parameter(
	struct server_link *server, const uint8_t *message, const struct frame *frame)
{
	struct registry *registry = link_registry(&server->link);
	struct server_login *login = server->login;
	const char *name, *value;
	int index;

	login->reported += frame->total;
	if (login->reported > WELCOME_MAX ||
		!report_parse_parameter(
			frame_body(message), frame_body_size(frame), &name, &value)) {
		server_close_for(server, REASON_BROKEN_PARAMETER_STATUS);
		return;
	}
	host_report_take_parameter(server, name, value);
	index = parameter_index(registry->parameters, name);
	if (index >= 0 ? !link_set_parameter(&server->link, (unsigned)index, value)
		       : !buffer_append(&login->untracked, message, frame->total))
		server_close_for(server, REASON_NO_MEMORY);
}

void server_welcome_take_key(struct server_link *server, const uint8_t *body, size_t length)
{
	if (length < STARTUP_KEY_MIN || length > STARTUP_KEY_MAX || server->cancel_key) {
		server_close_for(server, REASON_BAD_PKT_HEADER);
		return;
	}
	server->cancel_key = malloc(length);
	if (!server->cancel_key) {
		server_close_for(server, REASON_NO_MEMORY);
		return;
	}
	memcpy(server->cancel_key, body, length);
	server->cancel_key_length = (uint16_t)length;
	backends_add(server);
}

void server_welcome_write(const struct server_link *server, struct buffer *head)
{
	buffer_clear(head);
	writer_authentication(head, AUTH_OK, NULL, 0);
	buffer_append(head, server->login->untracked.data, server->login->untracked.length);
}

/* Does the server report a parameter that the pool's welcome does not know? */
static bool reports_more(const struct server_link *server)
{
	const struct parameter_table *table = link_registry(&server->link)->parameters;
	struct parameter_values reported, known;
	bool more = false;

	parameter_values_read(server->link.parameters, &reported);
	parameter_values_read(server->link.pool->welcome, &known);
	for (unsigned i = 0; i < parameter_count(table) && !more; i++)
		more = reported.tracked[i] && !known.tracked[i];
	return more;
}

/* Write the head of the pool's welcome anew. Returns false, without a change, without memory. */
static bool write_head(struct server_link *server)
{
	struct pool *pool = server->link.pool;
	struct buffer head = {0};

	server_welcome_write(server, &head);
	if (head.failed) {
		buffer_free(&head);
		return false;
	}
	buffer_free(&pool->welcome_head);
	pool->welcome_head = head;
	welcome_message_drop(pool);
	return true;
}

/*
 * The first server of a pool decides what a client without values of its own has. A later one may
 * be of a later version, and the welcome may be from a process that tracked less.
 */
static bool add_reported(struct server_link *server)
{
	struct pool *pool = server->link.pool;
	struct parameters *set = parameters_merge(
		pool->registry->parameters, server->link.parameters, pool->welcome);

	if (!set || !write_head(server)) {
		parameters_unref(set);
		return false;
	}
	parameters_unref(pool->welcome);
	pool->welcome = set;
	return true;
}

bool server_welcome_keep(struct server_link *server)
{
	struct pool *pool = server->link.pool;

	if (pool->welcome)
		return !reports_more(server) || add_reported(server);
	if (!write_head(server))
		return false;
	pool->welcome = parameters_ref(server->link.parameters);
	return true;
}
