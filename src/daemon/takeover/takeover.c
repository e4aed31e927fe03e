/* SPDX-License-Identifier: ISC */
#include "daemon/takeover/takeover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/systemd.h"
#include "daemon/takeover/fds_row.h"
#include "daemon/takeover/takeover_parts.h"
#include "session/serving/progress.h"
#include "session/takeover/adoption_statements.h"
#include "session/takeover/inventory.h"

struct takeover *takeover_begin(const struct settings *settings, char *why, size_t size)
{
	struct takeover *takeover = calloc(1, sizeof(*takeover));

	if (!takeover) {
		snprintf(why, size, "no memory for a takeover");
		return NULL;
	}
	takeover->socket = -1;
	takeover->began = clock_monotonic();
	takeover->why = why;
	takeover->why_size = size;
	buffer_init_secret(&takeover->input);
	buffer_init_secret(&takeover->messages);
	takeover_watch_signals();
	if (takeover_receive_all(takeover, settings))
		return takeover;
	takeover_free(takeover);
	return NULL;
}

/* --- adopting ----------------------------------------------------------------------------- */

static struct takeover_item *item_at(const struct takeover *takeover, size_t index)
{
	return index < takeover->items.length / sizeof(struct takeover_item)
		? (struct takeover_item *)takeover->items.data + index
		: NULL;
}

static const uint8_t *body_of(
	const struct takeover *takeover, const struct takeover_item *item, size_t *length)
{
	*length = item->length - FRAME_HEADER_SIZE;
	return takeover->messages.data + item->start + FRAME_HEADER_SIZE;
}

static bool is_listener(const struct takeover *takeover, const struct takeover_item *item)
{
	size_t length;
	const uint8_t *body = body_of(takeover, item, &length);

	return takeover->is_pgusher ? body[0] == INVENTORY_LISTENER
				    : fds_row_is_listener(body, length);
}

static unsigned managers_of(const struct takeover *takeover, const struct takeover_item *item)
{
	size_t length;
	const uint8_t *body = body_of(takeover, item, &length);

	return takeover->is_pgusher ? inventory_managers_of(body, length) : 0;
}

unsigned takeover_listeners(
	struct takeover *takeover, const struct listen_socket **sockets, int *metrics)
{
	struct takeover_item *item;

	for (size_t i = 0; (item = item_at(takeover, i)) != NULL; i++) {
		struct listen_socket received = {.fd = item->fd};

		if (item->fd < 0 || !is_listener(takeover, item))
			continue;
		switch (managers_of(takeover, item)) {
		case INVENTORY_MANAGERS_METRICS:
			if (*metrics >= 0)
				continue;
			*metrics = item->fd;
			item->fd = -1;
			continue;
		case INVENTORY_MANAGERS_CLIENTS:
			received.is_managers = true;
			break;
		default:
			break;
		}
		if (buffer_append(&takeover->listeners, &received, sizeof(received)))
			item->fd = -1;
	}
	*sockets = (const struct listen_socket *)takeover->listeners.data;
	return (unsigned)(takeover->listeners.length / sizeof(struct listen_socket));
}

/*
 * Keeps the row, since links borrow from it. Returns false when out of memory, or if it is no
 * row.
 */
static bool adopt_row(struct takeover *takeover, const uint8_t *body, size_t length, int fd)
{
	struct fds_row *row = fds_row_new(body, length);

	if (!row || !buffer_append(&takeover->rows, &row, sizeof(struct fds_row *))) {
		fds_row_free(row);
		close(fd);
		return false;
	}
	fds_row_adopt(row, takeover->adoption, fd);
	return true;
}

static bool adopt_item(struct takeover *takeover, struct takeover_item *item)
{
	size_t length;
	const uint8_t *body = body_of(takeover, item, &length);
	const int fd = item->fd;

	item->fd = -1;
	if (is_listener(takeover, item))
		return true;
	if (takeover->is_pgusher)
		return adoption_record(takeover->adoption, body[0], body + 1, length - 1, fd);
	return adopt_row(takeover, body, length, fd);
}

bool takeover_adopt(struct takeover *takeover, struct registry *registry)
{
	struct takeover_item *item;

	takeover->adoption = adoption_new(registry);
	if (!takeover->adoption)
		return false;
	if (!takeover->is_pgusher)
		adoption_statements_skip_pgbouncer_numbers(registry);
	for (size_t i = 0; (item = item_at(takeover, i)) != NULL; i++) {
		if (adopt_item(takeover, item))
			continue;
		/*
		 * The caller frees the registry first, in which the adoption holds references.
		 */
		adoption_free(takeover->adoption);
		takeover->adoption = NULL;
		return false;
	}
	adoption_join(takeover->adoption);
	return true;
}

/* --- commit and end ----------------------------------------------------------------------- */

/*
 * A PgBouncer answers SHUTDOWN by closing the connection. A pgusher sends an answer, since the
 * connection might also close because the process crashed.
 */
static bool commit_old_pgbouncer(struct takeover *takeover)
{
	struct buffer message = {0};
	char ignored[256];
	ssize_t got = 1;
	bool sent;

	log_write(LEVEL_LOG, "sending SHUTDOWN;");
	writer_query(&message, "SHUTDOWN;");
	sent = takeover_send(takeover, &message);
	buffer_free(&message);
	while (sent && (got > 0 || (got < 0 && errno == EINTR)))
		got = recv(takeover->socket, ignored, sizeof(ignored), 0);
	return sent;
}

bool takeover_commit(struct takeover *takeover, char *why, size_t size)
{
	bool good;

	takeover->why = why;
	takeover->why_size = size;
	snprintf(why, size, "the old process has not confirmed the handover");
	/* No timeout: after one it would be unknown which process has the connections. */
	takeover_set_timeout(takeover, 0);
	if (takeover->is_pgusher)
		good = takeover_ask(takeover, "HANDOVER COMMIT;") == TAKEOVER_ANSWER_DONE;
	else
		good = commit_old_pgbouncer(takeover);
	close(takeover->socket);
	takeover->socket = -1;
	return good;
}

void takeover_resume(struct takeover *takeover, const struct registry *registry)
{
	char line[PROGRESS_LINE_SIZE];

	adoption_activate(takeover->adoption);
	log_write(LEVEL_LOG, "old process killed, resuming work");
	progress_of_takeover(registry, clock_monotonic() - takeover->began, line);
	log_write(LEVEL_LOG, "%s", line);
	systemd_status(line);
}

static void close_descriptors(struct buffer *descriptors)
{
	for (size_t i = 0; i < descriptors->length / sizeof(int); i++)
		close(((int *)descriptors->data)[i]);
	buffer_free(descriptors);
}

void takeover_free(struct takeover *takeover)
{
	struct takeover_item *item;

	if (!takeover)
		return;
	for (size_t i = 0; (item = item_at(takeover, i)) != NULL; i++) {
		if (item->fd >= 0)
			close(item->fd);
	}
	for (size_t i = 0; i < takeover->rows.length / sizeof(struct fds_row *); i++)
		fds_row_free(((struct fds_row **)takeover->rows.data)[i]);
	takeover_undo(takeover);
	if (takeover->socket >= 0)
		close(takeover->socket);
	close_descriptors(&takeover->descriptors);
	buffer_free(&takeover->listeners);
	buffer_free(&takeover->rows);
	buffer_free(&takeover->items);
	buffer_wipe(&takeover->input);
	buffer_wipe(&takeover->messages);
	adoption_free(takeover->adoption);
	free(takeover);
}
