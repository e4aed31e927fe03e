/* SPDX-License-Identifier: ISC */
#include "session/takeover/parameter_record.h"

#include "wire/parameter_draft.h"
#include "wire/reader.h"
#include "wire/tagged.h"
#include "wire/writer.h"

/* --- writing ------------------------------------------------------------------------------ */

void parameter_record_write(struct buffer *out, uint16_t tag,
	const struct parameter_table *table, const struct parameters *set)
{
	struct buffer known = {0};

	for (unsigned i = 0; i < parameter_count(table); i++) {
		const char *value = parameters_get(set, i);

		if (!value)
			continue;
		writer_string(&known, parameter_name(table, i));
		writer_string(&known, value);
	}
	tagged_bytes(out, tag, known.data, known.length);
	out->failed = out->failed || known.failed;
	buffer_free(&known);
}

/*
 * Names and values of the followed parameters. An uncertain value is written as none.
 */
static void write_followed(struct buffer *out, uint16_t tag, const struct parameters *set)
{
	struct parameter_values values;
	struct buffer list = {0};

	parameter_values_read(set, &values);
	for (unsigned i = 0; i < values.count; i++) {
		const struct followed *followed = &values.followed[i];

		writer_string(&list, followed->name);
		writer_byte(&list, followed->value != NULL);
		if (followed->value)
			writer_string(&list, followed->value);
	}
	tagged_bytes(out, tag, list.data, list.length);
	out->failed = out->failed || list.failed;
	buffer_free(&list);
}

void parameter_record_write_set(
	struct buffer *out, uint16_t tracked, uint16_t followed, const struct parameters *set)
{
	parameter_record_write(out, tracked, parameters_table(set), set);
	if (parameters_has_followed(set))
		write_followed(out, followed, set);
}

/* --- reading ------------------------------------------------------------------------------ */

/* Read the followed parameters of a link. Those that no client can set are skipped. */
static enum drafted read_followed(
	struct parameter_draft *draft, enum link_kind kind, const struct tagged_span *bytes)
{
	enum drafted drafted = DRAFTED;
	struct reader reader;

	reader_init(&reader, bytes->at, bytes->length);
	while (drafted != DRAFTED_NO_MEMORY && reader_left(&reader) > 0) {
		const char *name = reader_string(&reader);
		const char *value = reader_byte(&reader) ? reader_string(&reader) : NULL;

		/* Only on a server can a value be uncertain. */
		if (!reader.failed && (value || kind == LINK_SERVER))
			drafted = parameter_draft_follow(draft, name, value);
	}
	return drafted;
}

/*
 * Return `set` with the followed parameters of `bytes`. The caller's reference to `set` is
 * taken over. Returns NULL when out of memory, or when there are too many followed parameters.
 */
static struct parameters *follow(struct parameter_table *table, struct parameters *set,
	enum link_kind kind, const struct tagged_span *bytes)
{
	struct parameter_draft draft;
	struct parameters *followed = NULL, *both = NULL;

	parameter_draft_begin(&draft, table);
	if (read_followed(&draft, kind, bytes) != DRAFTED_NO_MEMORY)
		followed = parameter_draft_end(&draft);
	else
		parameter_draft_drop(&draft);
	if (followed)
		both = parameters_follow(table, set, followed);
	parameters_unref(followed);
	parameters_unref(set);
	return both;
}

struct parameters *parameter_record_read(
	struct parameter_table *table, const struct tagged_span *bytes)
{
	struct parameters *set = parameters_empty(table);
	struct reader reader;

	reader_init(&reader, bytes->at, bytes->length);
	while (set && reader_left(&reader) > 0) {
		const char *name = reader_string(&reader);
		const char *value = reader_string(&reader);
		const int index = reader.failed ? -1 : parameter_index(table, name);
		struct parameters *more;

		if (index < 0)
			continue;
		more = parameters_with(table, set, (unsigned)index, value);
		parameters_unref(set);
		set = more;
	}
	return set;
}

struct parameters *parameter_record_read_set(struct parameter_table *table, enum link_kind kind,
	const struct tagged_span *tracked, const struct tagged_span *followed)
{
	struct parameters *set = parameter_record_read(table, tracked);

	return set && followed->length > 0 ? follow(table, set, kind, followed) : set;
}
