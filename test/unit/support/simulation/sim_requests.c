/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_requests.h"

#include "support/simulation/sim_notes.h"
#include "support/simulation/sim_random.h"
#include "support/simulation/sim_tokens.h"
#include "support/simulation/sim_trace.h"
#include "wire/writer.h"

/* Longer than the smallest pkt_buf. */
#define LONG_ROW                                                                                 \
	"all the bytes of this row of a COPY will not always be there when its first ones have " \
	"been passed on"

/* Number of statement names. All clients use the same names with different texts. */
enum { NAMES = 4 };

/* --- messages ----------------------------------------------------------------------------- */

static size_t begin(struct sim_client *client, char letter)
{
	return writer_begin(&client->out, (uint8_t)letter);
}

/* Completes a message, and appends it for the oracle too. */
static void end(struct sim_client *client, size_t mark)
{
	struct buffer *out = &client->out;

	writer_end(out, mark);
	assert_false(out->failed);
	sim_trace_message("client", client->number, "sends", out->data + mark - 1,
		out->length - mark + 1);
	/* The mark is after the type byte. */
	assert_true(
		buffer_append(&client->requests, out->data + mark - 1, out->length - mark + 1));
}

static void send_empty(struct sim_client *client, char letter)
{
	end(client, begin(client, letter));
}

static void send_text(struct sim_client *client, char letter, const char *text)
{
	const size_t mark = begin(client, letter);

	writer_string(&client->out, text);
	end(client, mark);
}

void sim_requests_query(struct sim_client *client, const char *sql)
{
	sim_notes_sent(client, sql);
	send_text(client, PQ_QUERY, sql);
	client->owed++;
	client->unnamed = false;
}

void sim_requests_sync(struct sim_client *client)
{
	send_empty(client, PQ_SYNC);
	client->owed++;
	client->batch = client->bound = false;
}

void sim_requests_terminate(struct sim_client *client)
{
	send_empty(client, PQ_TERMINATE);
	client->disconnects = true;
}

static void parse(struct sim_client *client, const char *name, const char *text)
{
	const size_t mark = begin(client, PQ_PARSE);

	sim_notes_sent(client, text);
	writer_string(&client->out, name);
	writer_string(&client->out, text);
	writer_int16(&client->out, 0);
	end(client, mark);
	client->unnamed |= name[0] == '\0';
}

/* Binds a parameter with a new token. */
static void bind_portal(struct sim_client *client, const char *portal, const char *statement)
{
	const size_t mark = begin(client, PQ_BIND);
	char token[16];

	snprintf(token, sizeof(token), "t%u", sim_tokens_new(client->number));
	writer_string(&client->out, portal);
	writer_string(&client->out, statement);
	writer_int16(&client->out, 0);
	writer_int16(&client->out, 1);
	writer_int32(&client->out, (uint32_t)strlen(token));
	writer_bytes(&client->out, token, strlen(token));
	writer_int16(&client->out, 0);
	end(client, mark);
	client->bound = true;
}

static void send_named(struct sim_client *client, char letter, char what, const char *name)
{
	const size_t mark = begin(client, letter);

	writer_byte(&client->out, (uint8_t)what);
	writer_string(&client->out, name);
	end(client, mark);
}

static void execute(struct sim_client *client, const char *portal, unsigned most)
{
	const size_t mark = begin(client, PQ_EXECUTE);

	writer_string(&client->out, portal);
	writer_int32(&client->out, most);
	end(client, mark);
}

/* --- statements --------------------------------------------------------------------------- */

static void draw_row(struct sim_client *client, char *out, size_t size)
{
	static const char *const words[] = {
		"row", "row", "show", "slow", "show", "notice", "write"};

	snprintf(out, size, "%s t%u %u", words[sim_below(COUNT(words))],
		sim_tokens_new(client->number), sim_below(4));
}

static void draw_transaction(char *out, size_t size)
{
	static const char *const words[] = {"begin", "begin", "begin", "begin", "commit",
		"commit", "rollback", "rollback", "commit and chain", "rollback and chain"};

	snprintf(out, size, "%s", words[sim_below(COUNT(words))]);
}

/* A value that belongs to the client, as far as the setting can have such values. */
static void draw_value(
	const struct sim_client *client, enum sim_setting setting, char *out, size_t size)
{
	static const char *const memory[] = {"64", "65kB", "128kB", "2048kB", "3MB"};
	static const char *const time[] = {"0", "5000", "7s", "60s", "3min"};

	if (setting == SIM_WORK_MEM)
		snprintf(out, size, "%s", memory[sim_below(COUNT(memory))]);
	else if (setting == SIM_STATEMENT_TIMEOUT)
		snprintf(out, size, "%s", time[sim_below(COUNT(time))]);
	else
		snprintf(out, size, "c%u_%u", client->number, sim_below(3));
}

/* All but application_name: its RESET in a transaction is reported twice (doc/differences.md). */
static enum sim_setting draw_name_of_reset(void)
{
	return (enum sim_setting)(1 + sim_below(SIM_SETTINGS - 1));
}

static void draw_savepoint(char *out, size_t size)
{
	static const char *const words[] = {"savepoint", "savepoint", "rollback to", "release"};

	snprintf(out, size, "%s %c", words[sim_below(COUNT(words))], (int)('a' + sim_below(2)));
}

/* A statement that changes settings, or undoes such a change, or ends it. */
static void draw_setting(
	struct sim_client *client, const struct sim_profile *profile, char *out, size_t size)
{
	const enum sim_setting setting = (enum sim_setting)sim_below(SIM_SETTINGS);
	const char *name = sim_setting_name(setting);
	static const char *const objects[] = {"create table", "create temp table", "drop table",
		"select pg_advisory_lock()", "select pg_advisory_unlock()",
		"declare c cursor with hold", "close c"};
	char value[SIM_VALUE];

	draw_value(client, setting, value, sizeof(value));
	switch (sim_below(12)) {
	case 10:
	case 11:
		snprintf(out, size, "%s", objects[sim_below(COUNT(objects))]);
		break;
	case 0:
		snprintf(out, size, "SET LOCAL %s='%s'", name, value);
		break;
	case 1:
		snprintf(out, size, "RESET %s", sim_setting_name(draw_name_of_reset()));
		break;
	case 2:
		snprintf(
			out, size, "set %s to default", sim_setting_name(draw_name_of_reset()));
		break;
	case 3:
		snprintf(out, size, "select set_config('%s','%s',%s)", name, value,
			sim_chance(50) ? "true" : "false");
		break;
	case 4:
		snprintf(out, size, "do set_config('%s','%s',false)", name, value);
		break;
	case 5:
		if (profile->transactions && !profile->listens)
			draw_savepoint(out, size);
		else
			snprintf(out, size, "SET ROLE c%u", client->number);
		break;
	default:
		snprintf(out, size, "SET %s='%s'", name, value);
	}
}

static void draw_channel(struct sim_client *client, char *out, size_t size)
{
	const unsigned channel = sim_below(SIM_CHANNELS);

	switch (sim_below(8)) {
	case 0:
	case 1:
	case 2:
		snprintf(out, size, "listen n%u", channel);
		break;
	case 3:
		snprintf(out, size, "unlisten n%u", channel);
		break;
	case 4:
		snprintf(out, size, "unlisten *");
		break;
	default:
		snprintf(out, size, "notify n%u, 't%u'", channel,
			sim_tokens_new(client->number));
	}
}

/* Any statement but COPY. */
static void draw_statement(
	struct sim_client *client, const struct sim_profile *profile, char *out, size_t size)
{
	if (sim_chance(profile->error_percent))
		snprintf(out, size, "fail t%u", sim_tokens_new(client->number));
	else if (profile->transactions && sim_chance(25))
		draw_transaction(out, size);
	else if (profile->listens && sim_chance(60))
		draw_channel(client, out, size);
	else if (sim_chance(profile->set_percent))
		draw_setting(client, profile, out, size);
	else if (sim_chance(5))
		snprintf(out, size, "copyout t%u %u", sim_tokens_new(client->number),
			sim_below(5));
	else
		draw_row(client, out, size);
}

/* A text that other clients use too: only the parameter's token identifies the client. */
static void draw_shared(const struct sim_profile *profile, char *out, size_t size)
{
	static const char *const words[] = {"row", "row", "row", "slow", "show", "fail"};
	static const char *const settings[] = {"SET app.tenant='shared'", "SET work_mem='3MB'",
		"SET LOCAL app.tenant='none'", "select set_config('app.tenant','all',false)",
		"select set_config('role','all',false)", "RESET app.tenant"};

	if (sim_chance(profile->set_percent)) {
		snprintf(out, size, "%s", settings[sim_below(COUNT(settings))]);
		return;
	}
	snprintf(out, size, "%s t%u %u", words[sim_below(COUNT(words))], profile->shared,
		sim_below(3));
}

static void draw_deallocate(struct sim_client *client)
{
	char sql[32];

	snprintf(sql, sizeof(sql), "deallocate s%u", sim_below(NAMES));
	sim_requests_query(client, sim_chance(70) ? sql : "deallocate all");
}

/* A statement that others may prepare too, or one of this client's only, as its answers tell. */
static void draw_prepare(
	struct sim_client *client, const struct sim_profile *profile, char *out, size_t size)
{
	static const char *const words[] = {"row", "row", "row", "show", "slow", "fail"};

	snprintf(out, size, "prepare s%u as %s t%u %u", sim_below(NAMES),
		words[sim_below(COUNT(words))],
		sim_chance(30) ? profile->shared : sim_tokens_new(client->number),
		1 + sim_below(2));
}

/* Mostly of a name that the client has. */
static void draw_execute(struct sim_client *client, char *out, size_t size)
{
	char name[8];

	for (unsigned i = 0; i < 2 * NAMES; i++) {
		snprintf(name, sizeof(name), "s%u", sim_below(NAMES));
		if (sim_postgres_find(&client->oracle, name))
			break;
	}
	snprintf(out, size, "execute %s('t%u')", name, sim_tokens_new(client->number));
}

/* A name that is tracked has the meaning that it would have if everything in flight succeeded. */
static bool may_execute(const struct sim_client *client, const struct sim_profile *profile)
{
	return profile->prepares && (client->owed == 0 || !profile->tracked);
}

/*
 * By SQL, by itself: so a statement follows its client, if nothing in the transaction, such as DO, may
 * have prepared some that do not.
 */
static void draw_prepared(struct sim_client *client, const struct sim_profile *profile)
{
	char text[SIM_TEXT];

	if (client->status == 'I' && sim_chance(60))
		draw_prepare(client, profile, text, sizeof(text));
	else
		draw_execute(client, text, sizeof(text));
	sim_requests_query(client, text);
}

/*
 * Everything has its first value again. Only without a transaction, and with no query behind it:
 * there the pooler reports application_name twice (doc/differences.md).
 */
static void draw_reset(struct sim_client *client)
{
	static const char *const words[] = {
		"RESET ALL", "DISCARD ALL", "RESET application_name"};

	sim_requests_query(client, words[sim_below(COUNT(words))]);
	client->resets = true;
}

static void draw_query(struct sim_client *client, const struct sim_profile *profile)
{
	char sql[SIM_QUERY] = "", text[SIM_TEXT];
	const unsigned count = sim_chance(60) ? 1 : sim_below(4);

	for (unsigned i = 0; i < count; i++) {
		draw_statement(client, profile, text, sizeof(text));
		snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), "%s%s", i ? "; " : "",
			text);
	}
	sim_requests_query(client, sql);
}

static void draw_function_call(struct sim_client *client)
{
	const size_t mark = begin(client, PQ_FUNCTION_CALL);
	const unsigned token = sim_tokens_new(client->number);

	writer_int32(&client->out, 1598);
	writer_int32(&client->out, token);
	end(client, mark);
	client->owed++;
}

/* --- COPY --------------------------------------------------------------------------------- */

void sim_requests_copy(struct sim_client *client, bool ends)
{
	if (!ends) {
		send_text(client, PQ_COPY_DATA, sim_chance(70) ? "1\t2" : LONG_ROW);
		return;
	}
	if (sim_chance(70))
		send_empty(client, PQ_COPY_DONE);
	else
		send_text(client, PQ_COPY_FAIL, "enough");
	client->copies = false;
}

/* Sends data without waiting for CopyInResponse, as some drivers do. */
static void copy_without_waiting(struct sim_client *client)
{
	for (unsigned i = sim_below(4); i > 0; i--)
		sim_requests_copy(client, false);
	sim_requests_copy(client, true);
}

static void draw_copy(struct sim_client *client, const struct sim_profile *profile)
{
	/* A separate name, so that no other request starts the COPY by accident. */
	const char *name = profile->apart ? "copy" : "";
	/* The client can only wait for this answer when all earlier ones have arrived. */
	const bool looks = client->owed == 0 && sim_chance(60);
	char text[SIM_TEXT];

	const bool extended = sim_chance(50);

	snprintf(text, sizeof(text), "%s t%u", sim_chance(75) ? "copyin" : "copybad",
		extended ? profile->shared : sim_tokens_new(client->number));
	if (extended) {
		send_named(client, PQ_CLOSE, 'S', name);
		parse(client, name, text);
		bind_portal(client, "", name);
		execute(client, "", 0);
		client->batch = true;
	} else {
		sim_requests_query(client, text);
	}
	client->awaits_copy = looks;
	if (!looks)
		copy_without_waiting(client);
}

/* --- extended queries --------------------------------------------------------------------- */

static void draw_name(const struct sim_profile *profile, char *out, size_t size)
{
	if (profile->names && sim_chance(60))
		snprintf(out, size, "s%u", sim_below(NAMES));
	else
		snprintf(out, size, "%s", "");
}

static void draw_rest_of_portal(struct sim_client *client, const char *portal)
{
	if (sim_chance(30))
		send_named(client, PQ_DESCRIBE, 'P', portal);
	if (sim_chance(20)) {
		execute(client, portal, 1 + sim_below(2));
		if (sim_chance(20))
			send_named(client, PQ_CLOSE, 'P', portal);
		return;
	}
	execute(client, portal, 0);
}

/*
 * When the pooler tracks names, they have the meaning that they would have if everything in
 * flight succeeded, and the unnamed statement survives a Query that is sent before an error is
 * known. A client that does not wait for that prepares the statement again.
 */
static bool may_use_again(
	const struct sim_client *client, const struct sim_profile *profile, const char *name)
{
	if (profile->tracked && (client->owed > 0 || (name[0] == '\0' && !client->unnamed)))
		return false;
	/* Each LISTEN and UNLISTEN is noted by its text. */
	if (profile->listens && name[0] == '\0')
		return false;
	return profile->apart;
}

/* Parse, Bind and Execute, or some of them. */
static void draw_extended(struct sim_client *client, const struct sim_profile *profile)
{
	char name[16], text[SIM_TEXT], portal[16] = "";
	bool anew;

	draw_name(profile, name, sizeof(name));
	anew = !may_use_again(client, profile, name) || sim_chance(70);
	if (anew) {
		if (name[0] == '\0' && may_execute(client, profile) && sim_chance(20))
			draw_execute(client, text, sizeof(text));
		else if (name[0] != '\0' || sim_chance(30))
			draw_shared(profile, text, sizeof(text));
		else
			draw_statement(client, profile, text, sizeof(text));
		/*
		 * When the pooler tracks names, a Parse of an existing name closes the client.
		 */
		if (name[0] != '\0' && (profile->tracked || sim_chance(70)))
			send_named(client, PQ_CLOSE, 'S', name);
		parse(client, name, sim_chance(3) ? "" : text);
	}
	if (sim_chance(20))
		send_named(client, PQ_DESCRIBE, 'S', name);
	if (anew && profile->apart && sim_chance(30))
		return;
	if (sim_chance(20))
		snprintf(portal, sizeof(portal), "p%u", client->names++ % 8);
	bind_portal(client, portal, name);
	draw_rest_of_portal(client, portal);
}

static void draw_batch(struct sim_client *client, const struct sim_profile *profile)
{
	client->batch = true;
	for (unsigned i = sim_below(4); i > 0; i--) {
		draw_extended(client, profile);
		if (sim_chance(15))
			send_empty(client, PQ_FLUSH);
		if (client->status != 'I' && sim_chance(5))
			return; /* the rest follows later */
	}
	if (sim_chance(8))
		send_empty(client, PQ_FLUSH);
	else
		sim_requests_sync(client);
}

void sim_requests_draw(struct sim_client *client, const struct sim_profile *profile)
{
	if (client->batch || sim_chance(45))
		draw_batch(client, profile);
	else if (sim_chance(10))
		draw_copy(client, profile);
	else if (sim_chance(4))
		draw_function_call(client);
	else if (profile->names && client->owed == 0 && sim_chance(8))
		draw_deallocate(client);
	else if (may_execute(client, profile) && sim_chance(40))
		draw_prepared(client, profile);
	else if (client->owed == 0 && client->status == 'I' &&
		sim_chance(profile->set_percent / 4))
		draw_reset(client);
	else if (sim_chance(3))
		sim_requests_copy(client, true); /* without a COPY */
	else
		draw_query(client, profile);
}
