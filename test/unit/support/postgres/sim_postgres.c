/* SPDX-License-Identifier: ISC */
#include "support/postgres/sim_postgres.h"

#include <strings.h>

#include "support/fakes/fake_pool.h"
#include "support/postgres/sim_postgres_sql.h"
#include "support/simulation/sim_hosts.h"
#include "support/simulation/sim_notes.h"
#include "support/simulation/sim_random.h"
#include "support/simulation/sim_server.h"
#include "support/simulation/sim_tokens.h"
#include "wire/message.h"
#include "wire/reader.h"
#include "wire/writer.h"

void sim_postgres_start(struct sim_postgres *pg, bool is_real, const char *application_name)
{
	*pg = (struct sim_postgres){.is_real = is_real, .status = 'I'};
	sim_settings_start(&pg->settings, application_name);
}

void sim_postgres_free(struct sim_postgres *pg)
{
	buffer_free(&pg->out);
	buffer_free(&pg->news);
}

void sim_postgres_take(struct sim_postgres *pg, size_t length)
{
	pg->taken += length;
	if (pg->taken < pg->out.length)
		return;
	buffer_clear(&pg->out);
	pg->taken = 0;
}

/* --- statements and portals --------------------------------------------------------------- */

static struct sim_statement *find_statement(struct sim_postgres *pg, const char *name)
{
	for (unsigned i = 0; i < SIM_STATEMENTS; i++)
		if (pg->statements[i].used && strcmp(pg->statements[i].name, name) == 0)
			return &pg->statements[i];
	return NULL;
}

static struct sim_portal *find_portal(struct sim_postgres *pg, const char *name)
{
	for (unsigned i = 0; i < SIM_PORTALS; i++)
		if (pg->portals[i].used && strcmp(pg->portals[i].name, name) == 0)
			return &pg->portals[i];
	return NULL;
}

const struct sim_statement *sim_postgres_find(struct sim_postgres *pg, const char *name)
{
	return find_statement(pg, name);
}

void sim_postgres_keep(struct sim_postgres *pg, const struct sim_statement *statement)
{
	struct sim_statement *free_one = NULL;

	for (unsigned i = 0; i < SIM_STATEMENTS && !free_one; i++)
		if (!pg->statements[i].used)
			free_one = &pg->statements[i];
	assert_non_null(free_one);
	*free_one = *statement;
}

bool sim_postgres_drop(struct sim_postgres *pg, const char *name)
{
	struct sim_statement *statement = find_statement(pg, name);

	if (statement)
		statement->used = false;
	return statement != NULL;
}

static void drop_portals(struct sim_postgres *pg)
{
	for (unsigned i = 0; i < SIM_PORTALS; i++)
		pg->portals[i].used = false;
}

/* All named statements. */
void sim_postgres_deallocate(struct sim_postgres *pg)
{
	for (unsigned i = 0; i < SIM_STATEMENTS; i++)
		pg->statements[i].used &= pg->statements[i].name[0] == '\0';
}

/* --- the ends of things ------------------------------------------------------------------- */

static void send_news(struct sim_postgres *pg)
{
	buffer_append(&pg->out, pg->news.data, pg->news.length);
	buffer_clear(&pg->news);
}

void sim_postgres_hear(struct sim_postgres *pg, const struct sim_notice *notice, uint32_t pid)
{
	const size_t mark = writer_begin(&pg->news, PQ_NOTIFICATION_RESPONSE);

	writer_int32(&pg->news, pid);
	writer_string(&pg->news, notice->name);
	writer_string(&pg->news, notice->payload);
	writer_end(&pg->news, mark);
	if (pg->at_rest)
		send_news(pg);
}

/* Notifications are sent by a COMMIT. */
static void tell_others(struct sim_postgres *pg, unsigned notified)
{
	for (unsigned i = 0; i < notified && pg->is_real; i++) {
		const struct sim_notice *notice = &pg->notices[i];
		unsigned token;

		if (sscanf(notice->payload, "t%u", &token) == 1)
			sim_notes_commit(
				token, sim_notes_bit(notice->name, strlen(notice->name)));
		sim_server_notify(pg, notice);
	}
}

void sim_postgres_end_transaction(struct sim_postgres *pg, bool good)
{
	const unsigned notified = pg->settings.now.notified;

	if (good)
		sim_settings_commit(&pg->settings);
	else
		sim_settings_rollback(&pg->settings);
	if (good)
		tell_others(pg, notified);
	pg->status = 'I';
	pg->implicit = false;
	drop_portals(pg);
	if (!pg->one_owner)
		pg->owner = 0;
}

static void report_changes(struct sim_postgres *pg)
{
	const char *value = pg->settings.now.value[SIM_APPLICATION_NAME];

	if (strcmp(pg->settings.reported, value) != 0)
		writer_parameter_status(&pg->out, "application_name", value);
	memcpy(pg->settings.reported, value, sizeof(pg->settings.reported));
}

static void ready(struct sim_postgres *pg)
{
	if (pg->status == 'I')
		sim_postgres_end_transaction(pg, true);
	pg->at_rest = pg->status == 'I';
	if (pg->at_rest)
		send_news(pg);
	report_changes(pg);
	sim_host_report(pg);
	writer_ready(&pg->out, (enum ready_status)pg->status);
	pg->rest = NULL;
}

void sim_postgres_fail(struct sim_postgres *pg, const char *sqlstate, const char *text)
{
	writer_error(&pg->out, "ERROR", sqlstate, text);
	if (pg->status == 'I')
		sim_postgres_end_transaction(pg, false);
	else
		pg->status = 'E';
	pg->copy = SIM_NO_COPY;
	pg->stuck = pg->interrupted = false;
	pg->rest = NULL;
	if (pg->extended)
		pg->skipping = true;
	else
		ready(pg);
}

/* --- what runs ---------------------------------------------------------------------------- */

static bool ends_transaction(const char *text)
{
	return strncasecmp(text, "commit", 6) == 0 || strncasecmp(text, "rollback", 8) == 0;
}

/*
 * In a failed transaction only its end may run. Otherwise appends the error and returns false.
 */
static bool may_run(struct sim_postgres *pg, const char *text)
{
	if (pg->status != 'E' || ends_transaction(text))
		return true;
	sim_postgres_fail(pg, "25P02", "current transaction is aborted");
	return false;
}

/* Runs the rest of the simple query, up to a statement that has to wait. */
static void run_query(struct sim_postgres *pg)
{
	char text[SIM_TEXT];

	while (pg->rest && *pg->rest) {
		const size_t length = strcspn(pg->rest, ";");

		assert_true(length < sizeof(text));
		snprintf(text, sizeof(text), "%.*s", (int)length, pg->rest);
		pg->rest += length + strspn(pg->rest + length, "; ");
		if (!may_run(pg, text) || sim_postgres_run(pg, text, NULL) != SIM_RUN_COMPLETE)
			return;
	}
	if (pg->rest)
		ready(pg);
}

static void on_query(struct sim_postgres *pg, const char *sql)
{
	assert_non_null(sql);
	pg->extended = false;
	if (sim_postgres_is_lift(sql)) {
		sim_postgres_drop(pg, "");
		sim_postgres_lift(pg);
		ready(pg);
		return;
	}
	if (sim_host_is_probe(sql)) {
		sim_postgres_drop(pg, "");
		if (sim_host_answer_probe(pg, sql))
			ready(pg);
		else
			sim_postgres_fail(pg, "42501", "permission denied");
		return;
	}
	if (sim_postgres_is_question(sql)) {
		sim_postgres_drop(pg, "");
		sim_postgres_answer_question(pg, sql);
		ready(pg);
		return;
	}
	assert_true(strlen(sql) < sizeof(pg->query));
	if (strncmp(sql, SIM_SETS, strlen(SIM_SETS)) != 0)
		pg->set_failure = SIM_SETS_SUCCEED;
	else if (pg->set_failure == SIM_SETS_SUCCEED && sim_chance(2))
		pg->set_failure = SIM_SETS_REFUSED;
	sim_postgres_drop(pg, "");
	if (find_portal(pg, ""))
		find_portal(pg, "")->used = false;
	snprintf(pg->query, sizeof(pg->query), "%s", sql);
	pg->rest = pg->query;
	if (*sql == '\0')
		writer_message(&pg->out, PQ_EMPTY_QUERY_RESPONSE, NULL, 0);
	run_query(pg);
}

void sim_postgres_go_on(struct sim_postgres *pg, bool finish)
{
	const enum sim_outcome outcome = sim_token(pg->running)->outcome;

	if (!pg->is_real) {
		finish = outcome == SIM_DONE;
		pg->interrupted = outcome == SIM_CANCELED;
	}
	if (!finish && !pg->interrupted)
		return;
	pg->stuck = false;
	sim_postgres_end_slow(pg);
	if (!pg->extended)
		run_query(pg);
}

static void on_copy_message(struct sim_postgres *pg, char letter)
{
	char text[32];

	snprintf(text, sizeof(text), "t%u", pg->running);
	if (letter == PQ_COPY_DONE) {
		pg->copy = SIM_NO_COPY;
		writer_command_complete(&pg->out, "COPY 1");
		if (!pg->extended)
			run_query(pg);
	} else if (letter == PQ_COPY_FAIL) {
		sim_postgres_fail(pg, "57014", text);
	} else if (letter == PQ_COPY_DATA && pg->copy == SIM_COPY_BAD) {
		sim_postgres_fail(pg, "22P02", text);
	} else if (letter != PQ_COPY_DATA && letter != PQ_FLUSH && letter != PQ_SYNC) {
		sim_postgres_fail(pg, "08P01", text);
	}
}

/* --- extended messages -------------------------------------------------------------------- */

static void prepare(struct sim_postgres *pg, const struct sim_statement *statement)
{
	sim_postgres_keep(pg, statement);
	writer_message(&pg->out, PQ_PARSE_COMPLETE, NULL, 0);
}

static void on_parse(struct sim_postgres *pg, const char *name, const char *text)
{
	struct sim_statement statement = {.used = true};

	assert_true(name && text);
	if (strcmp(name, SIM_RESTORE) == 0)
		text = SIM_RESTORE;
	assert_true(strlen(name) < SIM_NAME && strlen(text) < SIM_TEXT);
	snprintf(statement.name, sizeof(statement.name), "%s", name);
	snprintf(statement.text, sizeof(statement.text), "%s", text);
	/* The unnamed statement is dropped even if the new Parse fails. */
	if (name[0] == '\0')
		sim_postgres_drop(pg, name);
	pg->refused.used = false;
	if (!may_run(pg, text))
		pg->refused = statement;
	else if (find_statement(pg, name))
		sim_postgres_fail(pg, "42P05", "prepared statement already exists");
	else
		prepare(pg, &statement);
}

void sim_postgres_accept_refused(struct sim_postgres *pg)
{
	if (!pg->skipping || !pg->refused.used || pg->refused.name[0] == '\0')
		return;
	pg->skipping = false;
	sim_postgres_take(pg, sim_postgres_output(pg));
	prepare(pg, &pg->refused);
	pg->refused.used = false;
}

/* Reads format codes and parameters, of which there is at most one. */
static void read_parameter(struct reader *reader, char *out, size_t size)
{
	const uint8_t *bytes;
	size_t length;

	assert_int_equal(reader_int16(reader), 0);
	out[0] = '\0';
	if (reader_int16(reader) == 0)
		return;
	length = reader_int32(reader);
	bytes = reader_bytes(reader, length);
	assert_true(bytes && length < size);
	memcpy(out, bytes, length);
	out[length] = '\0';
}

/* The pooler restores settings: sets of three texts, and formats. */
static void read_restored(struct sim_postgres *pg, struct reader *reader)
{
	char texts[3][SIM_VALUE];
	unsigned count;

	assert_int_equal(reader_int16(reader), 0);
	count = reader_int16(reader);
	for (unsigned i = 0; i < count; i++) {
		const size_t length = reader_int32(reader);
		const uint8_t *bytes = reader_bytes(reader, length);

		assert_true(bytes && length < SIM_VALUE);
		memcpy(texts[i % 3], bytes, length);
		texts[i % 3][length] = '\0';
		if (i % 3 == 2)
			sim_settings_restore(&pg->settings, texts[0], texts[1], texts[2]);
	}
}

static void bind_portal(
	struct sim_postgres *pg, const char *name, const char *text, struct reader *reader)
{
	struct sim_portal *portal = find_portal(pg, name);

	for (unsigned i = 0; i < SIM_PORTALS && !portal; i++)
		if (!pg->portals[i].used)
			portal = &pg->portals[i];
	assert_non_null(portal);
	*portal = (struct sim_portal){.used = true};
	snprintf(portal->name, sizeof(portal->name), "%s", name);
	snprintf(portal->text, sizeof(portal->text), "%s", text);
	if (strcmp(text, SIM_RESTORE) == 0)
		read_restored(pg, reader);
	else
		read_parameter(reader, portal->parameter, sizeof(portal->parameter));
	writer_message(&pg->out, PQ_BIND_COMPLETE, NULL, 0);
}

static void on_bind(struct sim_postgres *pg, struct reader *reader)
{
	const char *name = reader_string(reader), *of = reader_string(reader);
	const struct sim_statement *statement;

	assert_true(name && of && strlen(name) < SIM_NAME);
	statement = find_statement(pg, of);
	if (!statement)
		sim_postgres_fail(pg, "26000", SIM_NO_STATEMENT);
	else if (!may_run(pg, statement->text))
		return;
	else if (name[0] != '\0' && find_portal(pg, name))
		sim_postgres_fail(pg, "42P03", "cursor already exists");
	else
		bind_portal(pg, name, statement->text, reader);
}

static void on_describe(struct sim_postgres *pg, char what, const char *name)
{
	const struct sim_statement *statement = NULL;
	const struct sim_portal *portal = NULL;

	assert_non_null(name);
	if (what == 'S')
		statement = find_statement(pg, name);
	else
		portal = find_portal(pg, name);
	if (!statement && !portal)
		sim_postgres_fail(pg, what == 'S' ? "26000" : "34000",
			what == 'S' ? SIM_NO_STATEMENT : "portal does not exist");
	else if (may_run(pg, statement ? statement->text : portal->text))
		sim_postgres_describe(
			pg, statement ? statement->text : portal->text, statement != NULL);
}

static void on_execute(struct sim_postgres *pg, const char *name, unsigned most)
{
	struct sim_portal *portal;

	assert_non_null(name);
	portal = find_portal(pg, name);
	if (!portal)
		sim_postgres_fail(pg, "34000", "portal does not exist");
	else if (may_run(pg, portal->text))
		sim_postgres_execute(pg, portal, most);
}

static void on_close(struct sim_postgres *pg, char what, const char *name)
{
	struct sim_portal *portal;

	assert_non_null(name);
	portal = find_portal(pg, name);
	if (what == 'S')
		sim_postgres_drop(pg, name);
	else if (portal)
		portal->used = false;
	writer_message(&pg->out, PQ_CLOSE_COMPLETE, NULL, 0);
}

static void on_extended(struct sim_postgres *pg, char letter, struct reader *reader)
{
	const char *name;
	char what;

	pg->extended = true;
	switch (letter) {
	case PQ_PARSE:
		name = reader_string(reader);
		on_parse(pg, name, reader_string(reader));
		break;
	case PQ_BIND:
		on_bind(pg, reader);
		break;
	case PQ_DESCRIBE:
	case PQ_CLOSE:
		what = (char)reader_byte(reader);
		name = reader_string(reader);
		if (letter == PQ_CLOSE)
			on_close(pg, what, name);
		else
			on_describe(pg, what, name);
		break;
	default:
		name = reader_string(reader);
		on_execute(pg, name, reader_int32(reader));
		break;
	}
}

static void on_function_call(struct sim_postgres *pg, struct reader *reader)
{
	pg->extended = false;
	if (!may_run(pg, ""))
		return;
	reader_int32(reader);
	sim_postgres_call(pg, reader_int32(reader));
	ready(pg);
}

void sim_postgres_handle(
	struct sim_postgres *pg, char letter, const uint8_t *body, size_t length)
{
	const bool was_at_rest = pg->at_rest;
	struct reader reader;

	assert_false(pg->stuck || pg->over);
	pg->at_rest = false;
	reader_init(&reader, body, length);
	if (letter == PQ_TERMINATE)
		pg->over = true;
	else if (pg->copy != SIM_NO_COPY)
		on_copy_message(pg, letter);
	else if (letter == PQ_SYNC) {
		pg->skipping = pg->extended = false;
		ready(pg);
	} else if (pg->skipping) {
		if (!pg->is_real)
			sim_tokens_skip(letter, body, length);
	} else if (letter == PQ_QUERY)
		on_query(pg, reader_string(&reader));
	else if (letter == PQ_FUNCTION_CALL)
		on_function_call(pg, &reader);
	else if (strchr("PBDEC", letter))
		on_extended(pg, letter, &reader);
	else {
		/* Late messages of a failed COPY. */
		assert_non_null(strchr("Hdcf", letter));
		pg->at_rest = was_at_rest;
	}
}
