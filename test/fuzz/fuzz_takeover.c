/* SPDX-License-Identifier: ISC */
/*
 * The state that an old process sends at a takeover: records of an inventory and rows of SHOW
 * FDS, each with or without a descriptor. Whatever they contain, the rebuilt connections run
 * and end, every descriptor is closed at the end, and all counts are right.
 *
 * A seed is a sequence of: kind (plus 128: with a descriptor), length of 2 bytes, that many
 * bytes.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "config/snapshot.h"
#include "daemon/takeover/fds_row.h"
#include "session/rules/life.h"
#include "session/serving/control.h"
#include "session/takeover/adoption.h"
#include "session/takeover/inventory.h"
#include "wire/message.h"

enum { RECORDS_MOST = 32, HEADER_SIZE = 3, HAS_DESCRIPTOR = 0x80, TURNS = 4 };

static const char config[] = "[databases]\n"
			     "db = host=/nonexistent\n"
			     "forced = host=/nonexistent user=bob\n"
			     "* = host=/nonexistent\n"
			     "[pgbouncer]\n"
			     "pool_mode = transaction\n"
			     "log_connections = 0\n"
			     "log_disconnections = 0\n"
			     "log_pooler_errors = 0\n";

static struct loop loop;
static struct process process;
static struct registry registry;
static struct adoption *adoption;
static struct fds_row *rows[RECORDS_MOST];
static int others[RECORDS_MOST]; /* our ends of the descriptors that were passed */
static bool is_server[RECORDS_MOST]; /* passed as a server connection */
static unsigned row_count, other_count;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void begin(void)
{
	const struct log_options quiet = {.file = NULL};
	struct problems problems = {0};
	struct snapshot *snapshot =
		snapshot_parse("fuzz.ini", config, sizeof(config) - 1, NULL, &problems);

	problems_free(&problems);
	process = (struct process){0};
	require(snapshot && log_configure(&quiet) && loop_init(&loop, &process.clock));
	process_init(&process, &loop.random, snapshot);
	registry = (struct registry){0};
	life_attach(&registry);
	require(registry_init(&registry, &process, &loop));
	adoption = adoption_new(&registry);
	require(adoption != NULL);
	row_count = other_count = 0;
}

static int give_descriptor(void)
{
	int ends[2];

	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
	others[other_count++] = ends[0];
	return ends[1];
}

static bool send_row(const uint8_t *body, size_t length, int fd)
{
	struct fds_row *row = fds_row_new(body, length);

	if (!row || fds_row_is_listener(body, length)) {
		fds_row_free(row);
		close(fd);
		return row != NULL;
	}
	rows[row_count++] = row;
	fds_row_adopt(row, adoption, fd);
	return true;
}

/* Returns false if the takeover would have ended there. */
static bool send_record(uint8_t kind, const uint8_t *body, size_t length)
{
	const bool is_row = (kind & ~HAS_DESCRIPTOR) == PQ_DATA_ROW;
	const int fd = is_row || kind & HAS_DESCRIPTOR ? give_descriptor() : -1;

	if (fd >= 0)
		is_server[other_count - 1] = (kind & ~HAS_DESCRIPTOR) == INVENTORY_SERVER;
	if (is_row)
		return send_row(body, length, fd);
	return adoption_record(adoption, kind & ~HAS_DESCRIPTOR, body, length, fd);
}

static bool send_all(const uint8_t *data, size_t size)
{
	bool good = true;

	for (int i = 0; i < RECORDS_MOST && size >= HEADER_SIZE && good; i++) {
		size_t length = (size_t)data[1] << 8 | data[2];

		if (length > size - HEADER_SIZE)
			length = size - HEADER_SIZE;
		good = send_record(data[0], data + HEADER_SIZE, length);
		data += HEADER_SIZE + length;
		size -= HEADER_SIZE + length;
	}
	return good;
}

/* Read to the end, which is reached only if the other end is closed. */
static void check_closed(int fd)
{
	uint8_t bytes[4096];
	ssize_t got;

	do
		got = recv(fd, bytes, sizeof(bytes), 0);
	while (got > 0);
	require(got == 0 || errno == ECONNRESET);
	close(fd);
}

/* Messages that a server, and a client, may send. */
static void answer_all(void)
{
	static const uint8_t done[] = {'1', 0, 0, 0, 4, '3', 0, 0, 0, 4, '1', 0, 0, 0, 4, 'E',
		0, 0, 0, 13, 'C', '0', 'A', '0', '0', '0', 0, 0, 0, 'Z', 0, 0, 0, 5, 'I'};
	static const uint8_t sync[] = {'S', 0, 0, 0, 4};

	for (unsigned i = 0; i < other_count; i++) {
		if (is_server[i])
			send(others[i], done, sizeof(done), MSG_NOSIGNAL);
		else
			send(others[i], sync, sizeof(sync), MSG_NOSIGNAL);
	}
}

static void end(void)
{
	control_close_all(&registry, REASON_DISKO_OVER);
	loop_end_turn(&loop);
	require(registry.process->limits.clients == 0 &&
		registry.process->cancel_keys.used == 0);
	require(registry.login_count == 0);
	while (other_count > 0)
		check_closed(others[--other_count]);
	adoption_free(adoption);
	registry_free(&registry);
	process_free(&process);
	loop_free(&loop);
	while (row_count > 0)
		fds_row_free(rows[--row_count]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin();
	if (send_all(data, size)) {
		adoption_join(adoption);
		adoption_activate(adoption);
		answer_all();
		for (int i = 0; i < TURNS; i++)
			loop_turn(&loop, false);
	}
	end();
	return 0;
}
