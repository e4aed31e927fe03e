/* SPDX-License-Identifier: ISC */
/* SHOW CONFIG: the settings in force, from their own table. */
#include "admin/show/topic.h"

static const struct column columns[] = {
	{"key", COLUMN_TEXT},
	{"value", COLUMN_TEXT},
	{"default", COLUMN_TEXT},
	{"changeable", COLUMN_TEXT},
};

static void fill(struct result *result, const struct show_request *request)
{
	size_t count;
	const struct setting_row *rows = settings_rows(&count);

	for (size_t i = 0; i < count; i++) {
		char value[32];

		result_begin_row(result);
		result_text(result, rows[i].name);
		result_text(result,
			settings_render(&rows[i], request->registry->process->settings, value,
				sizeof(value)));
		result_text(result, rows[i].default_text);
		result_text(result, settings_is_changeable(&rows[i]) ? "yes" : "no");
		result_end_row(result);
	}
}

const struct topic show_config = TOPIC("CONFIG", columns, fill);
