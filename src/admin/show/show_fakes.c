/* SPDX-License-Identifier: ISC */
#include "admin/show/show_fakes.h"

#include <strings.h>

#include "base/compat.h"

struct fake {
	struct topic topic; /* first: fill() finds the fake from its topic */
	const char *value; /* NULL: one of `values` */
	const char *const *values; /* by the setting compat_version */
	bool is_fixed;
};

static const struct fake *fake_of(const struct topic *topic)
{
	return (const struct fake *)topic;
}

#define TEXT(name, text, number) [name] = (text "/bouncer"),
static const char *const server_versions[COMPAT_VERSIONS] = {COMPAT_VERSIONS_OF(TEXT)};
#undef TEXT

#define NUMBER(name, text, number) [name] = (number),
static const char *const server_version_nums[COMPAT_VERSIONS] = {COMPAT_VERSIONS_OF(NUMBER)};
#undef NUMBER

const char *show_fakes_value(const struct topic *fake, enum compat_version version)
{
	const struct fake *found = fake_of(fake);

	return found->value ? found->value : found->values[version];
}

static void fill(struct result *result, const struct show_request *request)
{
	result_begin_row(result);
	result_text(result,
		show_fakes_value(
			request->topic, request->registry->process->settings->compat_version));
	result_end_row(result);
}

/* One column, named as the topic is. */
#define ROW(name, value, values, is_fixed)                                                     \
	{                                                                                      \
		{name, &(const struct column){name, COLUMN_TEXT}, 1, fill, RIGHT_STATS, NULL,  \
			NULL},                                                                 \
			value, values, is_fixed                                                \
	}
#define FAKE(name, value) ROW(name, value, NULL, false)
#define FIXED(name, value) ROW(name, value, NULL, true)
#define VERSION(name, values) ROW(name, NULL, values, true)

static const struct fake fakes[] = {
	/* PgBouncer's, with its spelling; the last one since 1.26. */
	FAKE("client_encoding", "UTF-8"),
	FAKE("default_transaction_isolation", "read committed"),
	FAKE("standard_conforming_strings", "on"),
	FAKE("datestyle", "ISO"),
	FAKE("timezone", "GMT"),
	FAKE("extra_float_digits", "1"),
	/* Ours, with PostgreSQL's. */
	FAKE("application_name", ""),
	FAKE("bytea_output", "hex"),
	FAKE("client_min_messages", "notice"),
	FAKE("default_transaction_deferrable", "off"),
	FAKE("default_transaction_read_only", "off"),
	FAKE("escape_string_warning", "on"),
	FAKE("idle_in_transaction_session_timeout", "0"),
	FAKE("idle_session_timeout", "0"),
	FIXED("in_hot_standby", "off"),
	FIXED("integer_datetimes", "on"),
	FAKE("IntervalStyle", "postgres"),
	FIXED("is_superuser", "on"),
	FAKE("lock_timeout", "0"),
	FIXED("max_identifier_length", "63"),
	FAKE("row_security", "on"),
	FAKE("search_path", "\"$user\", public"),
	FIXED("server_encoding", "UTF8"),
	VERSION("server_version", server_versions),
	VERSION("server_version_num", server_version_nums),
	FAKE("statement_timeout", "0"),
	FAKE("synchronous_commit", "on"),
	FAKE("transaction_deferrable", "off"),
	FAKE("transaction_isolation", "read committed"),
	FAKE("transaction_read_only", "off"),
};

const struct topic *show_fakes_find(const char *name)
{
	for (size_t i = 0; i < sizeof(fakes) / sizeof(fakes[0]); i++) {
		if (strcasecmp(fakes[i].topic.name, name) == 0)
			return &fakes[i].topic;
	}
	return NULL;
}

bool show_fakes_is_fixed(const struct topic *fake)
{
	return fake_of(fake)->is_fixed;
}
