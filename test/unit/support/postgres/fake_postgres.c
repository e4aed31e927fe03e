/* SPDX-License-Identifier: ISC */
#include "support/postgres/fake_postgres.h"

#include <strings.h>

#include "wire/message.h"
#include "wire/reader.h"
#include "wire/startup.h"
#include "wire/writer.h"

struct backend *postgres_backend(struct endpoint *server)
{
	struct backend *backend = server->backend;
	const struct server_link *link;

	if (backend)
		return backend;
	backend = server->backend = calloc(1, sizeof(*backend));
	assert_non_null(backend);
	backend->status = 'I';
	link = endpoint_server(server);
	if (link->cancel_key)
		memcpy(backend->key, link->cancel_key, sizeof(backend->key));
	else
		random_fill(&fake_loop.random, backend->key, sizeof(backend->key));
	return backend;
}

/* --- answers ------------------------------------------------------------------------------ */

static void ready(struct backend *backend, struct buffer *out)
{
	writer_ready(out, (enum ready_status)backend->status);
}

/* After the end of a statement: a simple query is over, a batch goes on. */
static void end_statement(struct backend *backend, struct buffer *out)
{
	if (!backend->extended)
		ready(backend, out);
}

static void fail_statement(
	struct backend *backend, struct buffer *out, const char *sqlstate, const char *text)
{
	writer_error(out, "ERROR", sqlstate, text);
	if (backend->status == 'T')
		backend->status = 'E';
	backend->copying = false;
	if (backend->extended)
		backend->skipping = true;
	else
		ready(backend, out);
}

static void complete(struct backend *backend, struct buffer *out, const char *tag)
{
	writer_command_complete(out, tag);
	end_statement(backend, out);
}

static void write_row(struct buffer *out, const char *text)
{
	const size_t mark = writer_begin(out, PQ_DATA_ROW);

	writer_int16(out, 1);
	writer_int32(out, (uint32_t)strlen(text));
	writer_bytes(out, text, strlen(text));
	writer_end(out, mark);
}

static void echo(struct backend *backend, struct buffer *out, const char *text)
{
	if (!backend->extended)
		letters_write(out, FROM_SERVER, "T");
	write_row(out, text);
	complete(backend, out, "SELECT 1");
}

/* Any number of `SET name='value';`, in a transaction or not. No quotes in values. */
static void set_all(struct backend *backend, struct buffer *out, const char *sql)
{
	char name[64], value[128];
	const bool gathered = strncmp(sql, "BEGIN;", 6) == 0;

	if (gathered) {
		writer_command_complete(out, "BEGIN");
		sql += 6;
	}
	while (sscanf(sql, "SET %63[^=]='%127[^']'", name, value) == 2) {
		writer_parameter_status(out, name, value);
		writer_command_complete(out, "SET");
		sql = strchr(sql, ';');
		if (!sql)
			break;
		sql++;
	}
	if (gathered)
		writer_command_complete(out, "COMMIT");
	end_statement(backend, out);
}

static void run_statement(struct backend *backend, struct buffer *out, const char *sql)
{
	const bool ends = strcmp(sql, "commit") == 0 || strcasecmp(sql, "rollback") == 0;

	if (backend->status == 'E' && !ends) {
		fail_statement(backend, out, "25P02", "current transaction is aborted");
	} else if (strcmp(sql, "begin") == 0 || ends) {
		backend->status = ends ? 'I' : 'T';
		complete(backend, out, ends ? "COMMIT" : "BEGIN");
	} else if (strcmp(sql, "fail") == 0) {
		fail_statement(backend, out, "22012", "division by zero");
	} else if (strncmp(sql, "copy", 4) == 0) {
		backend->copying = true;
		backend->copy_is_bad = strcmp(sql, "copy bad") == 0;
		letters_write(out, FROM_SERVER, "G");
	} else if (strncmp(sql, "SET ", 4) == 0 || strncmp(sql, "BEGIN;SET ", 10) == 0) {
		set_all(backend, out, sql);
	} else if (sql[0] == '\0') {
		letters_write(out, FROM_SERVER, "I");
		end_statement(backend, out);
	} else if (strncmp(sql, "slow", 4) == 0) {
		backend->stuck = true;
		snprintf(backend->running, sizeof(backend->running), "%s", sql);
	} else {
		echo(backend, out, sql);
	}
}

void postgres_finish(struct endpoint *server, struct buffer *out)
{
	struct backend *backend = postgres_backend(server);

	assert_true(backend->stuck);
	backend->stuck = false;
	echo(backend, out, backend->running);
}

/* --- messages ----------------------------------------------------------------------------- */

static void greet(struct endpoint *server, struct buffer *out)
{
	struct backend *backend = postgres_backend(server);

	letters_write(out, FROM_SERVER, "RS");
	writer_backend_key(out, backend->key, sizeof(backend->key));
	ready(backend, out);
}

/* A CancelRequest is answered by closing its connection. */
static void cancel(struct endpoint *server, const uint8_t *key)
{
	for (struct endpoint *endpoint = fake_next_endpoint(NULL); endpoint;
		endpoint = fake_next_endpoint(endpoint)) {
		struct backend *backend = endpoint->backend;

		if (!backend || memcmp(backend->key, key, sizeof(backend->key)) != 0)
			continue;
		backend->canceled++;
		backend->interrupted = backend->stuck;
	}
	scripted_end(server->script);
}

static void on_startup(
	struct endpoint *server, const uint8_t *message, size_t total, struct buffer *out)
{
	size_t length;
	const uint8_t *key = startup_cancel_key(message, total, &length);

	if (startup_peek(message, total, &total) == STARTUP_CANCEL)
		cancel(server, key);
	else
		greet(server, out);
}

static void on_copy_message(struct backend *backend, char letter, struct buffer *out)
{
	if (letter == PQ_COPY_DONE) {
		backend->copying = false;
		complete(backend, out, "COPY 1");
	} else if (letter == PQ_COPY_FAIL) {
		fail_statement(backend, out, "57014", "COPY from stdin failed");
	} else if (letter == PQ_COPY_DATA && backend->copy_is_bad) {
		fail_statement(backend, out, "22P02", "invalid input syntax");
	}
}

static void on_message(struct endpoint *server, char letter, const uint8_t *body, size_t length,
	struct buffer *out)
{
	struct backend *backend = postgres_backend(server);
	struct reader reader;
	const char *name;

	reader_init(&reader, body, length);
	if (backend->copying) {
		on_copy_message(backend, letter, out);
		return;
	}
	if (backend->skipping && letter != PQ_SYNC && letter != PQ_TERMINATE)
		return;
	switch (letter) {
	case PQ_QUERY:
		backend->extended = false;
		run_statement(backend, out, reader_string(&reader));
		break;
	case PQ_PARSE:
		name = reader_string(&reader);
		assert_non_null(name);
		snprintf(
			backend->parsed, sizeof(backend->parsed), "%s", reader_string(&reader));
		letters_write(out, FROM_SERVER, "1");
		break;
	case PQ_BIND:
		memcpy(backend->bound, backend->parsed, sizeof(backend->bound));
		letters_write(out, FROM_SERVER, "2");
		break;
	case PQ_DESCRIBE:
		letters_write(out, FROM_SERVER, reader_byte(&reader) == 'S' ? "tT" : "T");
		break;
	case PQ_EXECUTE:
		backend->extended = true;
		run_statement(backend, out, backend->bound);
		break;
	case PQ_CLOSE:
		letters_write(out, FROM_SERVER, "3");
		break;
	case PQ_SYNC:
		backend->skipping = false;
		ready(backend, out);
		break;
	case PQ_FUNCTION_CALL:
		letters_write(out, FROM_SERVER, "V");
		ready(backend, out);
		break;
	default: /* Flush; the rest of a COPY that has failed; Terminate */
		break;
	}
}

void postgres_answer(struct endpoint *server, struct buffer *out)
{
	struct backend *backend = postgres_backend(server);
	size_t length, total;
	const uint8_t *output = scripted_output(server->script, &length);
	char letter;

	if (backend->interrupted) {
		backend->stuck = backend->interrupted = false;
		fail_statement(backend, out, "57014", backend->running);
	}
	while (!backend->stuck &&
		(letter = letters_read(output + server->answered_offset,
			 length - server->answered_offset, &total)) != 0) {
		const uint8_t *message = output + server->answered_offset;

		server->answered_offset += total;
		if (letter == '^')
			on_startup(server, message, total, out);
		else
			on_message(server, letter, message + 5, total - 5, out);
	}
}

void postgres_work(struct endpoint *server)
{
	struct buffer out;

	for (;;) {
		buffer_init(&out);
		postgres_answer(server, &out);
		if (out.length == 0)
			break;
		send_buffer(server, &out);
	}
	scripted_run_all(server->script);
	fake_turn();
}
