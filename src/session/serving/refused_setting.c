/* SPDX-License-Identifier: ISC */
#include "session/serving/refused_setting.h"

#include "model/registry.h"
#include "model/statistics/pool_figures.h"
#include "session/link/close.h"
#include "session/parameters/parameter_sync.h"
#include "session/parameters/way_out.h"
#include "session/pool/draining.h"
#include "session/relay/pair.h"
#include "session/relay/relay.h"
#include "session/serving/unsent_query.h"
#include "wire/frame.h"
#include "wire/message.h"
#include "wire/report.h"
#include "wire/writer.h"

/* --- the error ---------------------------------------------------------------------------- */

/* Copy the error, with the context that the client's statement is not the one that failed. */
static void write_error(const struct buffer *error, struct buffer *out)
{
	static const char context[] =
		"Wpgusher sets the parameters of the client again, and runs nothing else";
	const size_t mark = writer_begin(out, PQ_ERROR_RESPONSE);

	writer_bytes(
		out, error->data + FRAME_HEADER_SIZE, error->length - FRAME_HEADER_SIZE - 1);
	writer_bytes(out, context, sizeof(context));
	writer_byte(out, 0);
	writer_end(out, mark);
}

static void count_error(struct pool *pool, const struct buffer *error)
{
	struct report report;

	report_parse(
		error->data + FRAME_HEADER_SIZE, error->length - FRAME_HEADER_SIZE, &report);
	pool_count_error(pool, report.sqlstate);
}

/* A Sync by itself cannot fail: it gets no error. */
static bool send_error(struct client_link *client, const struct buffer *error)
{
	struct buffer message;

	if (client->link.held_length > 0 && client->link.held[0] == PQ_SYNC)
		return true;
	buffer_init(&message);
	write_error(error, &message);
	return link_send(&client->link, &message);
}

/* End the query with the server's error. */
static void tell(struct server_link *server, struct client_link *client)
{
	const bool sent = send_error(client, &server->kept);

	count_error(server->link.pool, &server->kept);
	buffer_free(&server->kept);
	server_set_task(server, SERVER_TASK_NONE);
	if (sent)
		unsent_query_end(client, REASON_SETTING_REFUSED);
	else
		client_close_for(client, REASON_UNEXPECTED_EOF);
}

/* --- the end of the SETs ------------------------------------------------------------------ */

/*
 * They were sent as a transaction, since only the client's messages kept them apart from these: it
 * is rolled back, and the client tries again.
 */
static void roll_back(struct server_link *server, struct client_link *client)
{
	client->refused = true;
	server_set_task(server, SERVER_TASK_NONE);
	pair_unpair(&server->link);
	draining_client_unpaired(server, true);
	relay_client_resume(client);
}

void refused_setting_end(struct server_link *server)
{
	struct client_link *client = client_of(server->link.peer);
	struct parameters *target;

	if (server->transaction_status == READY_FAILED_TRANSACTION && !client->refused) {
		roll_back(server, client);
		return;
	}
	if (server->transaction_status != READY_IDLE || server->kept.failed ||
		!parameter_sync_doubt(client, server)) {
		server_close_for(server, REASON_RESET_QUERY_FAILED);
		return;
	}
	target = server->sync_target ? NULL : way_out_of(client);
	if (!target)
		tell(server, client);
	else if (!parameter_sync_again(client, server, target))
		client_close_for(client, REASON_SERVER_CONNECTION_CLOSED);
}
