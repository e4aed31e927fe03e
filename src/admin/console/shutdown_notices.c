/* SPDX-License-Identifier: ISC */
#include "admin/console/shutdown_notices.h"

#include "admin/console/console_session.h"
#include "admin/console/reply.h"
#include "session/serving/progress.h"

/* Returns false if no shutdown is in progress. */
static bool write_line(const struct registry *registry, char out[PROGRESS_LINE_SIZE])
{
	struct progress progress;

	if (registry->process->shutdown == SHUTDOWN_NONE ||
		!progress_of_process(registry, &progress))
		return false;
	progress_line(&progress, loop_now(registry->loop), out);
	return true;
}

void shutdown_notices_begin(struct client_link *client, struct buffer *out)
{
	const struct registry *registry = link_registry(&client->link);
	char line[PROGRESS_LINE_SIZE];

	if (!client->console || !write_line(registry, line))
		return;
	client->console->shutdown_notified = loop_now(registry->loop);
	reply_notice(out, line, NULL);
}

/* Descriptors that are being sent must not be mixed with other messages. */
static bool is_due(const struct console_session *session, usec_t now)
{
	return session && session->shutdown_notified > 0 && !session->passing &&
		now - session->shutdown_notified >= CONSOLE_NOTICE_PERIOD;
}

void shutdown_notices_send(struct registry *registry)
{
	const usec_t now = loop_now(registry->loop);
	char line[PROGRESS_LINE_SIZE];
	struct link *link, *next;

	if (registry->process->shutdown == SHUTDOWN_NONE)
		return;
	TAILQ_FOREACH_SAFE (link, &registry->console_pool->clients, place, next) {
		struct client_link *client = client_of(link);

		if (!is_due(client->console, now) || !write_line(registry, line))
			continue;
		client->console->shutdown_notified = now;
		console_session_notify(client, line);
	}
}
