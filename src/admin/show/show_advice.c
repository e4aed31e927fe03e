/* SPDX-License-Identifier: ISC */
/* SHOW ADVICE: what is wrong at the moment, and the setting to change. */
#include "admin/advice/advice.h"
#include "admin/show/topic.h"

static const struct column columns[] = {
	{"severity", COLUMN_TEXT},
	{"code", COLUMN_TEXT}, /* its section in doc/advice.md */
	{"database", COLUMN_TEXT}, /* NULL: not about one */
	{"user", COLUMN_TEXT},
	{"setting", COLUMN_TEXT}, /* NULL: no setting helps */
	{"advice", COLUMN_TEXT},
	{"since_seconds", COLUMN_NUMERIC},
};

static void add_sentence(struct result *result, const struct advice *advice)
{
	struct buffer text = {0};

	advice_write(advice, true, &text);
	buffer_append(&text, "", 1);
	result_text(result, text.failed ? NULL : (const char *)text.data);
	buffer_free(&text);
}

static void fill(struct result *result, const struct show_request *request)
{
	struct registry *registry = request->registry;
	const usec_t now = loop_now(registry->loop);
	const struct advice *advice;

	for (unsigned i = 0; (advice = advice_nth(registry, i)) != NULL; i++) {
		result_begin_row(result);
		result_text(result, advice_severity_name(advice_severity(advice)));
		result_text(result, advice_code(advice));
		result_text(result, advice_database(registry, advice));
		result_text(result, advice_user(registry, advice));
		result_text(result, advice_setting(advice));
		add_sentence(result, advice);
		result_count(result, (uint64_t)(advice_age(advice, now) / USEC_PER_SEC));
		result_end_row(result);
	}
}

const struct topic show_advice = TOPIC("ADVICE", columns, fill);
