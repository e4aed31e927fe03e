/* SPDX-License-Identifier: ISC */
#include "support/postgres/sim_postgres_sql.h"

#include <strings.h>

#include "support/fakes/fake_pool.h"
#include "support/messages/letters.h"
#include "support/simulation/sim_hosts.h"
#include "support/simulation/sim_notes.h"
#include "support/simulation/sim_random.h"
#include "support/simulation/sim_tokens.h"
#include "wire/message.h"
#include "wire/writer.h"

/* A parsed statement. */
struct call {
	const char *text, *parameter;
	char result[40]; /* text of its rows and errors */
	unsigned token; /* 0: none */
	unsigned number;
};

/* --- tokens ------------------------------------------------------------------------------- */

/*
 * A server records that it runs the statement. An oracle, which handles it when the answer has
 * arrived, checks that exactly one server ran it.
 */
static void note_run(struct sim_postgres *pg, unsigned token)
{
	struct sim_token *entry = sim_token(token);

	if (!pg->is_real) {
		if (entry->executed != 1)
			fail_msg("t%u was answered, and run %u times", token, entry->executed);
		return;
	}
	entry->executed++;
	if (entry->executed > 1)
		fail_msg("t%u was run twice", token);
	if (entry->skipped)
		fail_msg("t%u was run, though its client knows that it was not", token);
	if (pg->owner != 0 && pg->owner != entry->owner)
		fail_msg("t%u of client %u was run in what is client %u's", token, entry->owner,
			pg->owner);
	pg->owner = entry->owner;
}

/* --- answers ------------------------------------------------------------------------------ */

static void write_row(struct sim_postgres *pg, const char *text)
{
	const size_t mark = writer_begin(&pg->out, PQ_DATA_ROW);

	writer_int16(&pg->out, 1);
	writer_int32(&pg->out, (uint32_t)strlen(text));
	writer_bytes(&pg->out, text, strlen(text));
	writer_end(&pg->out, mark);
}

static void write_heading(struct sim_postgres *pg)
{
	if (!pg->extended)
		letters_write(&pg->out, FROM_SERVER, "T");
}

static enum sim_run complete(struct sim_postgres *pg, const char *tag)
{
	writer_command_complete(&pg->out, tag);
	return SIM_RUN_COMPLETE;
}

/* --- command words ------------------------------------------------------------------------ */

static enum sim_run run_row(struct sim_postgres *pg, const struct call *call)
{
	write_heading(pg);
	for (unsigned i = 0; i < call->number; i++)
		write_row(pg, call->result);
	return complete(pg, "SELECT");
}

static enum sim_run run_show(struct sim_postgres *pg, const struct call *call)
{
	char values[(SIM_SETTINGS + 1) * SIM_VALUE], text[sizeof(values) + 16];

	sim_settings_show(&pg->settings, values, sizeof(values));
	snprintf(text, sizeof(text), "t%u=%s", call->token, values);
	write_heading(pg);
	write_row(pg, text);
	return complete(pg, "SHOW");
}

/* The pooler asks for the time limits that a client may have left with its SETs. */
static enum sim_run run_show_limit(struct sim_postgres *pg, const struct call *call)
{
	const bool is_kept = strcasecmp(call->text, "show statement_timeout") == 0;

	write_heading(pg);
	write_row(pg, is_kept ? pg->settings.now.value[SIM_STATEMENT_TIMEOUT] : "0");
	return complete(pg, "SHOW");
}

static enum sim_run run_fail(struct sim_postgres *pg, const struct call *call)
{
	sim_postgres_fail(pg, "22012", call->result);
	return SIM_RUN_FAILED;
}

/* The host decides; the oracle follows it. */
static enum sim_run run_write(struct sim_postgres *pg, const struct call *call)
{
	struct sim_token *token = sim_token(call->token);

	if (pg->is_real)
		token->is_refused = sim_host_is_read_only(pg->host);
	if (!token->is_refused)
		return complete(pg, "INSERT 0 1");
	sim_postgres_fail(pg, "25006", call->result);
	return SIM_RUN_FAILED;
}

static enum sim_run run_notice(struct sim_postgres *pg, const struct call *call)
{
	writer_notice(&pg->out, "NOTICE", "00000", call->result);
	return complete(pg, "DO");
}

static enum sim_run run_slow(struct sim_postgres *pg, const struct call *call)
{
	pg->stuck = true;
	pg->running = call->token;
	sim_postgres_go_on(pg, false);
	/* sim_postgres_go_on() runs the following statements too. */
	return SIM_RUN_WAITS;
}

/* This statement is one of the pooler's SETs, which fail. */
static enum sim_run fail_sets(struct sim_postgres *pg)
{
	const bool canceled = pg->set_failure == SIM_SETS_CANCELED;

	pg->set_failure = SIM_SETS_SUCCEED;
	pg->had_set_failure = true;
	sim_postgres_fail(pg, canceled ? "57014" : "22023",
		canceled ? "canceling statement due to user request" : "no such value");
	return SIM_RUN_FAILED;
}

static enum sim_run run_begin(struct sim_postgres *pg, const struct call *call)
{
	(void)call;
	/* The cancel request may arrive before the transaction starts. */
	if (pg->set_failure == SIM_SETS_CANCELED && sim_chance(30))
		return fail_sets(pg);
	pg->status = 'T';
	pg->implicit = false;
	return complete(pg, "BEGIN");
}

static enum sim_run run_commit(struct sim_postgres *pg, const struct call *call)
{
	const bool good = pg->status != 'E';

	(void)call;
	sim_postgres_end_transaction(pg, good);
	return complete(pg, good ? "COMMIT" : "ROLLBACK");
}

/* The next transaction begins at once, for the same client. */
static enum sim_run run_chain(struct sim_postgres *pg, const struct call *call)
{
	const unsigned owner = pg->owner;
	const bool good = pg->status == 'T' && strncasecmp(call->text, "commit", 6) == 0;

	if (pg->status == 'I') {
		sim_postgres_fail(pg, "25P01", call->text);
		return SIM_RUN_FAILED;
	}
	sim_postgres_end_transaction(pg, good);
	pg->status = 'T';
	pg->owner = owner;
	return complete(pg, good ? "COMMIT" : "ROLLBACK");
}

static enum sim_run run_create_temporary(struct sim_postgres *pg, const struct call *call)
{
	if (pg->settings.now.table) {
		sim_postgres_fail(pg, "42P07", call->text);
		return SIM_RUN_FAILED;
	}
	pg->settings.now.table = true;
	return complete(pg, "CREATE TABLE");
}

static enum sim_run run_drop(struct sim_postgres *pg, const struct call *call)
{
	if (!pg->settings.now.table) {
		sim_postgres_fail(pg, "42P01", call->text);
		return SIM_RUN_FAILED;
	}
	pg->settings.now.table = false;
	return complete(pg, "DROP TABLE");
}

static enum sim_run run_declare(struct sim_postgres *pg, const struct call *call)
{
	if (pg->settings.now.cursor) {
		sim_postgres_fail(pg, "42P03", call->text);
		return SIM_RUN_FAILED;
	}
	pg->settings.now.cursor = true;
	return complete(pg, "DECLARE CURSOR");
}

static enum sim_run run_close(struct sim_postgres *pg, const struct call *call)
{
	if (!pg->settings.now.cursor) {
		sim_postgres_fail(pg, "34000", call->text);
		return SIM_RUN_FAILED;
	}
	sim_settings_close_cursor(&pg->settings);
	return complete(pg, "CLOSE CURSOR");
}

static enum sim_run run_lock(struct sim_postgres *pg, const struct call *call)
{
	pg->settings.lock = strstr(call->text, "unlock") == NULL;
	write_heading(pg);
	write_row(pg, "");
	return complete(pg, "SELECT 1");
}

/* An object that belongs to no session; the tag alone does not tell that. */
static enum sim_run run_create(struct sim_postgres *pg, const struct call *call)
{
	(void)call;
	return complete(pg, "CREATE TABLE");
}

static enum sim_run run_rollback(struct sim_postgres *pg, const struct call *call)
{
	(void)call;
	sim_postgres_end_transaction(pg, false);
	return complete(pg, "ROLLBACK");
}

static enum sim_run run_copy_in(struct sim_postgres *pg, const struct call *call)
{
	letters_write(&pg->out, FROM_SERVER, "G");
	pg->running = call->token;
	pg->copy = strncmp(call->text, "copybad", 7) == 0 ? SIM_COPY_BAD : SIM_COPY_GOOD;
	return SIM_RUN_WAITS;
}

static enum sim_run run_copy_out(struct sim_postgres *pg, const struct call *call)
{
	letters_write(&pg->out, FROM_SERVER, "H");
	for (unsigned i = 0; i < call->number; i++)
		writer_message(&pg->out, PQ_COPY_DATA, call->result, strlen(call->result));
	letters_write(&pg->out, FROM_SERVER, "c");
	return complete(pg, "COPY");
}

/* Skips a word, in any letter case. */
static bool takes_word(const char **text, const char *word)
{
	const size_t length = strlen(word);

	if (strncasecmp(*text, word, length) != 0)
		return false;
	*text += length;
	return true;
}

/* SET [LOCAL] NAME = VALUE, NAME TO VALUE, or ROLE VALUE. */
static enum sim_run run_set(struct sim_postgres *pg, const struct call *call)
{
	const char *text = call->text, *value;
	enum sim_setting setting = SIM_ROLE;
	bool local;

	if (pg->set_failure != SIM_SETS_SUCCEED)
		return fail_sets(pg);
	takes_word(&text, "set ");
	local = takes_word(&text, "local ");
	value = text;
	if (!takes_word(&value, "role ")) {
		value = strchr(text, '=') ? strchr(text, '=') : strcasestr(text, " to ");
		assert_non_null(value);
		setting = sim_setting_of(text, (size_t)(value - text));
		value += *value == '=' ? 1 : strlen(" to ");
	}
	value += strspn(value, " ");
	if (strcasecmp(value, "default") == 0)
		sim_settings_reset(&pg->settings, setting);
	else
		sim_settings_set(&pg->settings, setting, value, strlen(value), local);
	return complete(pg, "SET");
}

/* The words up to the next quote, then what is in quotes. */
static size_t take_literal(const char **text, const char **literal)
{
	const char *start = strchr(*text, '\''), *end = start ? strchr(start + 1, '\'') : NULL;

	assert_non_null(end);
	*literal = start + 1;
	*text = end + 1;
	return (size_t)(end - start - 1);
}

/* set_config('NAME','VALUE',LOCAL), with any words before it. */
static enum sim_setting call_set_config(struct sim_postgres *pg, const char *text)
{
	const char *name, *value;
	const size_t length = take_literal(&text, &name);
	const enum sim_setting setting = sim_setting_of(name, length);
	const size_t size = take_literal(&text, &value);

	sim_settings_set(&pg->settings, setting, value, size, strncmp(text, ",true", 5) == 0);
	return setting;
}

static enum sim_run run_set_config(struct sim_postgres *pg, const struct call *call)
{
	enum sim_setting setting;

	if (pg->set_failure != SIM_SETS_SUCCEED)
		return fail_sets(pg);
	setting = call_set_config(pg, call->text);
	write_heading(pg);
	write_row(pg, pg->settings.now.value[setting]);
	return complete(pg, "SELECT 1");
}

static enum sim_run run_do(struct sim_postgres *pg, const struct call *call)
{
	call_set_config(pg, call->text);
	return complete(pg, "DO");
}

static enum sim_run run_reset(struct sim_postgres *pg, const struct call *call)
{
	const char *name = call->text + strlen("reset ");

	if (pg->set_failure != SIM_SETS_SUCCEED)
		return fail_sets(pg);
	if (strcasecmp(name, "all") == 0)
		sim_settings_reset_all(&pg->settings);
	else
		sim_settings_reset(&pg->settings, sim_setting_of(name, strlen(name)));
	return complete(pg, "RESET");
}

/* Savepoints are for transaction blocks. */
static enum sim_run refuse_savepoint(struct sim_postgres *pg, const struct call *call)
{
	sim_postgres_fail(pg, pg->status == 'I' ? "25P01" : "3B001", call->text);
	return SIM_RUN_FAILED;
}

static enum sim_run run_savepoint(struct sim_postgres *pg, const struct call *call)
{
	const char *name = call->text + strlen("savepoint ");

	if (pg->status == 'I' || !sim_settings_save(&pg->settings, name))
		return refuse_savepoint(pg, call);
	return complete(pg, "SAVEPOINT");
}

static enum sim_run run_release(struct sim_postgres *pg, const struct call *call)
{
	const char *name = call->text + strlen("release ");

	if (pg->status == 'I' || !sim_settings_release(&pg->settings, name))
		return refuse_savepoint(pg, call);
	return complete(pg, "RELEASE");
}

static enum sim_run run_rollback_to(struct sim_postgres *pg, const struct call *call)
{
	const char *name = call->text + strlen("rollback to ");

	if (pg->status == 'I' || !sim_settings_rollback_to(&pg->settings, name))
		return refuse_savepoint(pg, call);
	pg->status = 'T';
	return complete(pg, "ROLLBACK");
}

static enum sim_run run_discard(struct sim_postgres *pg, const struct call *call)
{
	(void)call;
	if (pg->status != 'I') {
		sim_postgres_fail(pg, "25001", "DISCARD ALL cannot run in a transaction");
		return SIM_RUN_FAILED;
	}
	sim_settings_reset_all(&pg->settings);
	sim_settings_reset(&pg->settings, SIM_ROLE);
	sim_settings_drop_objects(&pg->settings);
	pg->settings.now.channels = 0;
	sim_postgres_deallocate(pg);
	pg->owner = 0;
	return complete(pg, "DISCARD ALL");
}

static enum sim_run run_deallocate_all(struct sim_postgres *pg, const struct call *call)
{
	(void)call;
	sim_postgres_deallocate(pg);
	return complete(pg, "DEALLOCATE ALL");
}

/* The name at the text, with quotes or without. Returns what is behind it. */
static const char *read_name(const char *text, char out[SIM_NAME])
{
	const bool quoted = *text == '"';
	const size_t length = strcspn(text + quoted, quoted ? "\"" : " (");

	assert_true(length > 0 && length < SIM_NAME);
	snprintf(out, SIM_NAME, "%.*s", (int)length, text + quoted);
	return text + length + 2 * quoted;
}

static enum sim_run run_deallocate(struct sim_postgres *pg, const struct call *call)
{
	char name[SIM_NAME];

	read_name(call->text + strlen("deallocate "), name);
	if (sim_postgres_drop(pg, name))
		return complete(pg, "DEALLOCATE");
	sim_postgres_fail(pg, "26000", SIM_NO_STATEMENT);
	return SIM_RUN_FAILED;
}

/* Whatever becomes of the transaction, the statement stays. */
static enum sim_run run_prepare(struct sim_postgres *pg, const struct call *call)
{
	static const char as[] = " as ";
	struct sim_statement statement = {.used = true, .from_sql = true};
	const char *text = read_name(call->text + strlen("prepare "), statement.name);

	assert_int_equal(strncasecmp(text, as, strlen(as)), 0);
	snprintf(statement.text, sizeof(statement.text), "%s", text + strlen(as));
	if (sim_postgres_find(pg, statement.name)) {
		sim_postgres_fail(pg, "42P05", "prepared statement already exists");
		return SIM_RUN_FAILED;
	}
	sim_postgres_keep(pg, &statement);
	return complete(pg, "PREPARE");
}

static const struct sim_statement *executed(struct sim_postgres *pg, const char *text)
{
	char name[SIM_NAME];

	read_name(text + strlen("execute "), name);
	return sim_postgres_find(pg, name);
}

unsigned long long sim_postgres_executed;

static enum sim_run run_execute(struct sim_postgres *pg, const struct call *call)
{
	const struct sim_statement *statement = executed(pg, call->text);
	const char *argument = strchr(call->text, '\'');
	char parameter[16] = "";

	if (!statement) {
		sim_postgres_fail(pg, "26000", SIM_NO_STATEMENT);
		return SIM_RUN_FAILED;
	}
	if (statement->text[0] == '\0') {
		sim_postgres_fail(pg, "42601", "wrong number of parameters");
		return SIM_RUN_FAILED;
	}
	assert_non_null(argument);
	sim_postgres_executed += pg->is_real;
	snprintf(parameter, sizeof(parameter), "%.*s", (int)strcspn(argument + 1, "'"),
		argument + 1);
	return sim_postgres_run(
		pg, statement->text, call->parameter ? call->parameter : parameter);
}

static enum sim_run run_listen(struct sim_postgres *pg, const struct call *call)
{
	const char *name = call->text + strlen("listen ");

	pg->settings.now.channels |= sim_notes_bit(name, strlen(name));
	return complete(pg, "LISTEN");
}

/* It also replaces a DEALLOCATE that is not run on the server. */
static enum sim_run run_unlisten(struct sim_postgres *pg, const struct call *call)
{
	const char *name = call->text + strlen("unlisten ");

	if (*name == '*')
		pg->settings.now.channels = 0;
	else
		pg->settings.now.channels &= ~sim_notes_bit(name, strlen(name));
	return complete(pg, "UNLISTEN");
}

/* notify NAME, 'PAYLOAD' */
static enum sim_run run_notify(struct sim_postgres *pg, const struct call *call)
{
	struct sim_notice *notice = &pg->notices[pg->settings.now.notified];
	unsigned token;

	assert_true(pg->settings.now.notified < SIM_NOTICES);
	assert_int_equal(sscanf(call->text + strlen("notify "), "%63[^,], '%15[^']'",
				 notice->name, notice->payload),
		2);
	/* The text may be used again: the parameter tells which NOTIFY it is. */
	if (call->parameter && call->parameter[0])
		snprintf(notice->payload, sizeof(notice->payload), "%s", call->parameter);
	if (sscanf(notice->payload, "t%u", &token) == 1)
		note_run(pg, token);
	pg->settings.now.notified++;
	return complete(pg, "NOTIFY");
}

/* The statement of server_check_query. */
static enum sim_run run_select(struct sim_postgres *pg, const struct call *call)
{
	(void)call;
	write_heading(pg);
	write_row(pg, "1");
	return complete(pg, "SELECT 1");
}

static const struct word {
	const char *word;
	enum sim_run (*run)(struct sim_postgres *pg, const struct call *call);
	bool has_token, has_rows;
} words[] = {
	{"row ", run_row, true, true}, {"show statement_timeout", run_show_limit, false, true},
	{"show lock_timeout", run_show_limit, false, true}, {"show ", run_show, true, true},
	{"slow ", run_slow, true, true}, {"fail ", run_fail, true, false},
	{"write ", run_write, true, false}, {"notice ", run_notice, true, false},
	{"copyin ", run_copy_in, true, false}, {"copybad ", run_copy_in, true, false},
	{"copyout ", run_copy_out, true, false}, {"begin", run_begin, false, false},
	{"commit and chain", run_chain, false, false}, {"commit", run_commit, false, false},
	{"rollback and chain", run_chain, false, false},
	{"create table", run_create, false, false},
	{"create temp table", run_create_temporary, false, false},
	{"drop table", run_drop, false, false}, {"select pg_advisory_", run_lock, false, true},
	{"declare ", run_declare, false, false}, {"close ", run_close, false, false},
	{"rollback to ", run_rollback_to, false, false},
	{"rollback", run_rollback, false, false}, {"savepoint ", run_savepoint, false, false},
	{"release ", run_release, false, false}, {"set ", run_set, false, false},
	{"select set_config(", run_set_config, false, true},
	{"select pg_catalog.set_config(", run_set_config, false, true},
	{"do set_config(", run_do, false, false}, {"reset ", run_reset, false, false},
	{"discard all", run_discard, false, false}, {"prepare ", run_prepare, false, false},
	{"execute ", run_execute, false, false},
	{"deallocate all", run_deallocate_all, false, false},
	{"deallocate ", run_deallocate, false, false},
	{"unlisten ", run_unlisten, false, false}, {"listen ", run_listen, false, false},
	{"notify ", run_notify, false, false}, {"select 1", run_select, false, true},
	{SIM_RESTORE, run_select, false, true}, /* done by its Bind */
};

static const struct word *word_of(const char *text)
{
	for (size_t i = 0; i < COUNT(words); i++)
		if (strncasecmp(text, words[i].word, strlen(words[i].word)) == 0)
			return &words[i];
	fail_msg("unknown statement \"%s\"", text);
	return NULL;
}

/*
 * A statement with a parameter is identified by the parameter's token, since its text may be
 * used again.
 */
static const struct word *read_call(struct call *call, const char *text, const char *parameter)
{
	const struct word *word = word_of(text);

	*call = (struct call){.text = text, .parameter = parameter, .number = 1};
	if (!word->has_token)
		return word;
	sscanf(text, "%*s t%u %u", &call->token, &call->number);
	snprintf(call->result, sizeof(call->result), "t%u%s%s", call->token,
		parameter ? "/" : "", parameter ? parameter : "");
	if (parameter)
		sscanf(parameter, "t%u", &call->token);
	return word;
}

/* --- for sim_postgres --------------------------------------------------------------------- */

enum sim_run sim_postgres_run(struct sim_postgres *pg, const char *text, const char *parameter)
{
	struct call call;
	const struct word *word = read_call(&call, text, parameter);

	if (word->has_token)
		note_run(pg, call.token);
	return word->run(pg, &call);
}

static void execute_rows(struct sim_postgres *pg, struct sim_portal *portal, unsigned most)
{
	struct call call;

	read_call(&call, portal->text, portal->parameter[0] ? portal->parameter : NULL);
	if (!portal->started) {
		note_run(pg, call.token);
		portal->left = call.number;
	}
	portal->started = true;
	for (unsigned i = 0; portal->left > 0 && (most == 0 || i < most); i++, portal->left--)
		write_row(pg, call.result);
	if (portal->left > 0)
		writer_message(&pg->out, PQ_PORTAL_SUSPENDED, NULL, 0);
	else
		complete(pg, "SELECT");
}

void sim_postgres_execute(struct sim_postgres *pg, struct sim_portal *portal, unsigned most)
{
	if (portal->text[0] == '\0')
		writer_message(&pg->out, PQ_EMPTY_QUERY_RESPONSE, NULL, 0);
	else if (strncmp(portal->text, "row ", 4) == 0)
		execute_rows(pg, portal, most);
	else
		sim_postgres_run(
			pg, portal->text, portal->parameter[0] ? portal->parameter : NULL);
}

void sim_postgres_describe(struct sim_postgres *pg, const char *text, bool whole)
{
	const struct sim_statement *statement = NULL;

	if (whole)
		letters_write(&pg->out, FROM_SERVER, "t");
	if (strncasecmp(text, "execute ", strlen("execute ")) == 0)
		statement = executed(pg, text);
	text = statement ? statement->text : text;
	letters_write(
		&pg->out, FROM_SERVER, text[0] != '\0' && word_of(text)->has_rows ? "T" : "n");
}

void sim_postgres_end_slow(struct sim_postgres *pg)
{
	char text[32];

	if (pg->is_real)
		sim_token(pg->running)->outcome = pg->interrupted ? SIM_CANCELED : SIM_DONE;
	snprintf(text, sizeof(text), "t%u", pg->running);
	if (pg->interrupted) {
		sim_postgres_fail(pg, "57014", text);
		return;
	}
	write_heading(pg);
	write_row(pg, text);
	complete(pg, "SELECT");
}

/* --- questions ---------------------------------------------------------------------------- */

bool sim_postgres_is_question(const char *sql)
{
	return strncmp(sql + (*sql == '('), "SELECT '", strlen("SELECT '")) == 0 ||
		strncmp(sql, "SELECT pg_catalog.substr('Ss'",
			strlen("SELECT pg_catalog.substr('Ss'")) == 0;
}

/* A row of a letter, a name, and a value or NULL. */
static void write_finding(
	struct sim_postgres *pg, const char *letter, const char *name, const char *value)
{
	const char *const texts[] = {letter, name, value};
	const size_t mark = writer_begin(&pg->out, PQ_DATA_ROW);

	writer_int16(&pg->out, COUNT(texts));
	for (size_t i = 0; i < COUNT(texts); i++) {
		writer_int32(&pg->out, texts[i] ? (uint32_t)strlen(texts[i]) : UINT32_MAX);
		if (texts[i])
			writer_bytes(&pg->out, texts[i], strlen(texts[i]));
	}
	writer_end(&pg->out, mark);
}

#define LIFT "BEGIN ISOLATION LEVEL READ COMMITTED;SELECT 'V', 'statement_timeout'"

bool sim_postgres_is_lift(const char *sql)
{
	return strncmp(sql, LIFT, strlen(LIFT)) == 0;
}

void sim_postgres_lift(struct sim_postgres *pg)
{
	run_begin(pg, NULL);
	write_finding(pg, "V", sim_setting_name(SIM_STATEMENT_TIMEOUT),
		pg->settings.now.value[SIM_STATEMENT_TIMEOUT]);
	sim_settings_set(&pg->settings, SIM_STATEMENT_TIMEOUT, "0", 1, true);
	complete(pg, "SELECT");
}

/* Those of pg_settings that were SET, the role, and custom settings by their names. */
static void answer_settings(struct sim_postgres *pg, const char *sql)
{
	for (unsigned i = 0; i < SIM_SETTINGS; i++) {
		const char *name = sim_setting_name((enum sim_setting)i);
		const char *value = pg->settings.now.value[i];
		char bare[SIM_VALUE], asked[2 * SIM_VALUE];

		snprintf(asked, sizeof(asked), "current_setting('%s'", name);
		if (sim_settings_list(&pg->settings, (enum sim_setting)i, bare, sizeof(bare)))
			write_finding(pg, "S", name, bare);
		else if (strstr(sql, asked))
			write_finding(pg, "S", name, strcmp(value, "none") == 0 ? NULL : value);
	}
}

/* Those of PREPARE that are not the pooler's. */
static void answer_statements(struct sim_postgres *pg)
{
	for (unsigned i = 0; i < SIM_STATEMENTS; i++) {
		const struct sim_statement *each = &pg->statements[i];

		if (each->used && each->from_sql &&
			strncmp(each->name, "PGBOUNCER_", 10) != 0 &&
			strncmp(each->name, "PGUSHER_", 8) != 0)
			write_finding(pg, "P", each->name, "");
	}
}

void sim_postgres_answer_question(struct sim_postgres *pg, const char *sql)
{
	write_heading(pg);
	if (strstr(sql, "pg_catalog.pg_settings"))
		answer_settings(pg, sql);
	if (strstr(sql, "pg_depend") && pg->settings.now.table)
		write_finding(pg, "T", "table t", "");
	if (strstr(sql, "pg_cursors") && pg->settings.now.cursor)
		write_finding(pg, "C", "cursor c", "");
	if (strstr(sql, "pg_prepared_statements"))
		answer_statements(pg);
	if (strstr(sql, "pg_locks") && pg->settings.lock)
		write_finding(pg, "L", "advisory lock 1", "");
	for (unsigned i = 0; strstr(sql, "pg_listening_channels") && sim_notes_name(i); i++)
		if (pg->settings.before.channels & 1u << i)
			write_finding(pg, "N", sim_notes_name(i), "");
	complete(pg, "SELECT");
	if (strstr(sql, "; COMMIT"))
		run_commit(pg, NULL);
	if (!strstr(sql, "; RESET ALL"))
		return;
	sim_settings_reset_all(&pg->settings);
	complete(pg, "RESET");
}

void sim_postgres_call(struct sim_postgres *pg, unsigned token)
{
	const size_t mark = writer_begin(&pg->out, PQ_FUNCTION_CALL_RESPONSE);

	note_run(pg, token);
	writer_int32(&pg->out, 4);
	writer_int32(&pg->out, token);
	writer_end(&pg->out, mark);
}
