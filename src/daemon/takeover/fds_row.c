/* SPDX-License-Identifier: ISC */
#include "daemon/takeover/fds_row.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "session/login/client_greeting.h"
#include "wire/reader.h"

enum column {
	COLUMN_FD,
	COLUMN_TASK,
	COLUMN_USER,
	COLUMN_DATABASE,
	COLUMN_ADDRESS,
	COLUMN_PORT,
	COLUMN_CANCEL,
	COLUMN_LINK,
	COLUMN_CLIENT_ENCODING,
	COLUMN_STD_STRINGS,
	COLUMN_DATESTYLE,
	COLUMN_TIMEZONE,
	COLUMN_PASSWORD,
	COLUMN_CLIENT_KEY,
	COLUMN_SERVER_KEY,
	COLUMNS,
};

/* Versions before 1.16 send fewer columns; missing cells are NULL. */
enum { COLUMNS_LEAST = COLUMN_TIMEZONE + 1, KEY_SIZE = 8 };

struct fds_row {
	char *cells[COLUMNS]; /* owned; NULL: SQL's NULL, or no such column */
	uint8_t key[KEY_SIZE], client_key[SCRAM_KEY_SIZE];
	struct buffer parameters;
};

/* --- reading ------------------------------------------------------------------------------ */

/* The next cell, borrowed from the message and without a NUL; NULL for SQL's NULL. */
static const uint8_t *next_cell(struct reader *reader, uint32_t *length)
{
	*length = reader_int32(reader);
	if (*length != UINT32_MAX)
		return reader_bytes(reader, *length);
	*length = 0;
	return NULL;
}

bool fds_row_is_listener(const uint8_t *body, size_t length)
{
	struct reader reader;
	const uint8_t *cell;
	uint32_t size;

	reader_init(&reader, body, length);
	reader_int16(&reader);
	next_cell(&reader, &size);
	cell = next_cell(&reader, &size);
	return cell && size == 6 && memcmp(cell, "pooler", 6) == 0;
}

static bool read_cells(struct fds_row *row, struct reader *reader)
{
	const unsigned count = reader_int16(reader);

	for (unsigned i = 0; i < count; i++) {
		uint32_t length;
		const uint8_t *cell = next_cell(reader, &length);

		if (!cell || i >= COLUMNS)
			continue;
		row->cells[i] = calloc(1, (size_t)length + 1);
		if (!row->cells[i])
			return false;
		memcpy(row->cells[i], cell, length);
	}
	return count >= COLUMNS_LEAST && reader_done(reader);
}

static long long number(const struct fds_row *row, enum column column)
{
	long long out = 0;

	return row->cells[column] && text_to_integer(row->cells[column], &out) ? out : 0;
}

/* SHOW FDS has the cancel key as an unsigned number. */
static uint64_t key_number(const struct fds_row *row)
{
	return row->cells[COLUMN_CANCEL] ? strtoull(row->cells[COLUMN_CANCEL], NULL, 10) : 0;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode `\x` and hex digits that stand for `size` bytes. Returns false for any other text. */
static bool read_hex(const char *text, uint8_t *out, size_t size)
{
	if (!text || strlen(text) != 2 + 2 * size || strncmp(text, "\\x", 2) != 0)
		return false;
	for (size_t i = 0; i < size; i++) {
		const int high = digit(text[2 + 2 * i]), low = digit(text[3 + 2 * i]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static void write_parameter(struct fds_row *row, const char *name, enum column column)
{
	if (!row->cells[column])
		return;
	writer_string(&row->parameters, name);
	writer_string(&row->parameters, row->cells[column]);
}

static bool convert(struct fds_row *row)
{
	const uint64_t key = key_number(row);

	for (unsigned i = 0; i < KEY_SIZE; i++)
		row->key[i] = (uint8_t)(key >> (8 * (KEY_SIZE - 1 - i)));
	write_parameter(row, "client_encoding", COLUMN_CLIENT_ENCODING);
	write_parameter(row, "standard_conforming_strings", COLUMN_STD_STRINGS);
	write_parameter(row, "DateStyle", COLUMN_DATESTYLE);
	write_parameter(row, "TimeZone", COLUMN_TIMEZONE);
	return !row->parameters.failed && row->cells[COLUMN_TASK];
}

struct fds_row *fds_row_new(const uint8_t *body, size_t length)
{
	struct fds_row *row = calloc(1, sizeof(*row));
	struct reader reader;

	if (!row)
		return NULL;
	reader_init(&reader, body, length);
	if (read_cells(row, &reader) && convert(row))
		return row;
	fds_row_free(row);
	return NULL;
}

void fds_row_free(struct fds_row *row)
{
	if (!row)
		return;
	for (unsigned i = 0; i < COLUMNS; i++) {
		if (row->cells[i])
			explicit_bzero(row->cells[i], strlen(row->cells[i]));
		free(row->cells[i]);
	}
	buffer_free(&row->parameters);
	explicit_bzero(row, sizeof(*row));
	free(row);
}

/* --- adopting ----------------------------------------------------------------------------- */

static struct address address_of_peer(const struct fds_row *row, int fd)
{
	struct sockaddr_storage peer = {.ss_family = AF_UNSPEC};
	socklen_t length = sizeof(peer);
	struct ucred credentials;

	if (!row->cells[COLUMN_ADDRESS] || strcmp(row->cells[COLUMN_ADDRESS], "unix") != 0) {
		getpeername(fd, (struct sockaddr *)&peer, &length);
		return address_of((struct sockaddr *)&peer, length);
	}
	length = sizeof(credentials);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
		credentials.pid = 0;
	return (struct address){
		.family = AF_UNIX,
		.port = (uint16_t)number(row, COLUMN_PORT),
		.pid = credentials.pid,
	};
}

/*
 * The requests of a pair that are in flight are unknown, so its server is closed when the
 * client releases it: no other client may receive an answer to one of them.
 */
static void describe_server(struct link_record *record)
{
	record->state = record->peer ? "paired" : "idle";
	record->status = record->peer ? 0 : 'I';
	record->flags = LINK_RECORD_TOUCHED | (record->peer ? LINK_RECORD_CLOSE_NEEDED : 0);
}

/*
 * Returns whether the connection can be used. Left out are clients that have not sent their
 * startup packet, idle servers without a cancel key, since their login is not over (SHOW FDS
 * has no column for that), and idle servers that have sent something unasked or disconnected.
 */
static bool is_usable(const struct fds_row *row, bool is_client, int fd)
{
	const char *user = row->cells[COLUMN_USER], *database = row->cells[COLUMN_DATABASE];
	char byte;

	if (!user || !database || user[0] == '(' || database[0] == '(')
		return false;
	return is_client || number(row, COLUMN_LINK) != 0 ||
		(key_number(row) != 0 &&
			recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) < 0);
}

void fds_row_adopt(const struct fds_row *row, struct adoption *adoption, int fd)
{
	const bool is_client = strcmp(row->cells[COLUMN_TASK], "client") == 0;
	const char *user = row->cells[COLUMN_USER], *database = row->cells[COLUMN_DATABASE];
	struct link_record record = {
		.kind = is_client ? LINK_CLIENT : LINK_SERVER,
		.handle = (uint64_t)number(row, COLUMN_FD),
		.peer = (uint64_t)number(row, COLUMN_LINK),
		.database = database,
		.user = user,
		.remote = address_of_peer(row, fd),
		.key = {row->key, KEY_SIZE},
		.parameters = {row->parameters.data, row->parameters.length},
	};

	if (!is_usable(row, is_client, fd)) {
		close(fd);
		return;
	}
	if (is_client)
		record.state = record.peer ? "paired" : "idle";
	else
		describe_server(&record);
	adoption_link(adoption, &record, fd);
	adoption_secret(adoption, database, user, row->cells[COLUMN_PASSWORD],
		read_hex(row->cells[COLUMN_CLIENT_KEY], (uint8_t *)row->client_key,
			SCRAM_KEY_SIZE)
			? row->client_key
			: NULL);
}
