/* SPDX-License-Identifier: ISC */
#include "session/takeover/count_record.h"

#include <stdlib.h>
#include <string.h>

#include "session/takeover/count_families.h"
#include "wire/tagged.h"

/*
 * A field is a sequence of counts. Each has its family, row and column as texts, a total in 8
 * bytes, the number of pairs in 2 bytes, and the pairs: a size and the number of values of this
 * size, 8 bytes each.
 */
enum { PAIR_SIZE = 16 };

/* --- writing ------------------------------------------------------------------------------ */

/* A count that is being written. The number of its pairs is filled in at the end. */
struct draft {
	struct buffer *out;
	size_t pairs_at; /* the offset of the number of pairs */
	uint16_t pairs;
};

static void add_pair(struct draft *draft, uint64_t size, uint64_t count)
{
	if (count == 0)
		return;
	writer_int64(draft->out, size);
	writer_int64(draft->out, count);
	draft->pairs++;
}

static void write_histogram(struct draft *draft, const struct histogram *histogram)
{
	for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++)
		add_pair(draft, histogram_bounds[i], histogram->counts[i]);
	add_pair(draft, UINT64_MAX, histogram->counts[HISTOGRAM_BOUNDS]);
}

static void write_latency(struct draft *draft, const struct latency_counts *counts)
{
	for (unsigned cell = 0; cell < LATENCY_CELLS; cell++)
		add_pair(draft, latency_cell_least(cell), counts->cells[cell]);
}

static void write_pairs(struct draft *draft, enum count_shape shape, const void *at)
{
	switch (shape) {
	case COUNT_NUMBER:
		break;
	case COUNT_HISTOGRAM:
		write_histogram(draft, at);
		break;
	case COUNT_HISTOGRAM_AT:
		write_histogram(draft, *(struct histogram *const *)at);
		break;
	case COUNT_LATENCY:
		write_latency(draft, at);
		break;
	}
}

/* 0: nothing was counted, or only events that took no time, which have pairs. */
static uint64_t total_of(enum count_shape shape, const void *at)
{
	const struct histogram *histogram = at;

	switch (shape) {
	case COUNT_NUMBER:
		return *(const uint64_t *)at;
	case COUNT_HISTOGRAM:
		return histogram->sum;
	case COUNT_HISTOGRAM_AT:
		histogram = *(struct histogram *const *)at;
		return histogram ? histogram->sum : 0;
	case COUNT_LATENCY:
		return ((const struct latency_counts *)at)->max;
	}
	return 0;
}

static bool is_there(enum count_shape shape, const void *at)
{
	return shape != COUNT_HISTOGRAM_AT || *(struct histogram *const *)at != NULL;
}

static void write_number_of_pairs(const struct draft *draft)
{
	if (draft->out->failed)
		return;
	draft->out->data[draft->pairs_at] = (uint8_t)(draft->pairs >> 8);
	draft->out->data[draft->pairs_at + 1] = (uint8_t)draft->pairs;
}

static const char *label_of(const char *const *labels, unsigned i)
{
	return labels ? labels[i] : "";
}

static void write_count(
	struct buffer *out, const struct count_family *family, unsigned place, const void *at)
{
	const uint64_t total = total_of(family->shape, at);
	struct draft draft = {.out = out};
	const size_t begin = out->length;

	writer_string(out, family->name);
	writer_string(out, label_of(family->rows, place / family->column_count));
	writer_string(out, label_of(family->columns, place % family->column_count));
	writer_int64(out, total);
	draft.pairs_at = out->length;
	writer_int16(out, 0);
	write_pairs(&draft, family->shape, at);
	write_number_of_pairs(&draft);
	if (total == 0 && draft.pairs == 0)
		buffer_shorten(out, begin);
}

static void write_family(
	struct buffer *out, const struct count_family *family, const uint8_t *base)
{
	for (unsigned i = 0; i < family->row_count * family->column_count; i++) {
		const void *at = base + family->offset + i * family->stride;

		if (is_there(family->shape, at))
			write_count(out, family, i, at);
	}
}

/* The owner is not changed. */
static void write_tables(struct buffer *counts, const struct count_table *table, void *owner)
{
	for (; table->families; table++) {
		const void *base = table->place(owner, false);

		for (size_t i = 0; base && i < table->count; i++)
			write_family(counts, &table->families[i], base);
	}
}

/* Append the counts as a field, if there are any, and free them. */
static void end_counts(struct buffer *out, uint16_t tag, struct buffer *counts)
{
	if (counts->length > 0)
		tagged_bytes(out, tag, counts->data, counts->length);
	out->failed = out->failed || counts->failed;
	buffer_free(counts);
}

static void write_owner(
	struct buffer *out, uint16_t tag, const struct count_table *table, void *owner)
{
	struct buffer counts = {0};

	write_tables(&counts, table, owner);
	end_counts(out, tag, &counts);
}

/* A reader adds up the counts of all workers. */
void count_record_write_process(
	struct buffer *out, uint16_t tag, const struct registry *registry)
{
	struct buffer counts = {0};
	struct registry *each;

	EACH_REGISTRY (each, registry->process)
		write_tables(&counts, count_tables_of_process, each);
	end_counts(out, tag, &counts);
}

void count_record_write_database(
	struct buffer *out, uint16_t tag, const struct database *database)
{
	write_owner(out, tag, count_tables_of_database, (void *)database);
}

void count_record_write_pool(struct buffer *out, uint16_t tag, const struct pool *pool)
{
	write_owner(out, tag, count_tables_of_pool, (void *)pool);
}

/* --- reading ------------------------------------------------------------------------------ */

struct count {
	const char *family, *row, *column; /* point into the field */
	uint64_t total;
	unsigned pairs;
	struct reader rest; /* from the first pair on */
};

static uint64_t read_number(struct reader *reader)
{
	const uint64_t high = reader_int32(reader);

	return high << 32 | reader_int32(reader);
}

static bool read_count(struct reader *reader, struct count *out)
{
	if (reader_left(reader) == 0)
		return false;
	out->family = reader_string(reader);
	out->row = reader_string(reader);
	out->column = reader_string(reader);
	out->total = read_number(reader);
	out->pairs = reader_int16(reader);
	out->rest = *reader;
	return reader_bytes(reader, (size_t)out->pairs * PAIR_SIZE) != NULL;
}

static void add_to_histogram(struct histogram *histogram, struct count *count)
{
	histogram->sum += count->total;
	for (unsigned i = 0; i < count->pairs; i++) {
		const uint64_t bound = read_number(&count->rest);

		histogram->counts[histogram_bucket(bound)] += read_number(&count->rest);
	}
}

static void add_to_latency(struct latency_counts *counts, struct count *count)
{
	if (count->total > counts->max)
		counts->max = count->total;
	for (unsigned i = 0; i < count->pairs; i++) {
		const uint64_t time = read_number(&count->rest);

		counts->cells[latency_cell(time)] += read_number(&count->rest);
	}
}

static void add_to_histogram_at(struct histogram **at, struct count *count)
{
	if (!*at)
		*at = calloc(1, sizeof(**at));
	if (*at)
		add_to_histogram(*at, count);
}

static void add_count(enum count_shape shape, void *at, struct count *count)
{
	switch (shape) {
	case COUNT_NUMBER:
		*(uint64_t *)at += count->total;
		break;
	case COUNT_HISTOGRAM:
		add_to_histogram(at, count);
		break;
	case COUNT_HISTOGRAM_AT:
		add_to_histogram_at(at, count);
		break;
	case COUNT_LATENCY:
		add_to_latency(at, count);
		break;
	}
}

/* Return the index of a label, or `count` when it is not known. */
static unsigned find_label(const char *const *labels, unsigned count, const char *label)
{
	return labels ? label_find(labels, count, label, count) : 0;
}

static void add_to_family(const struct count_family *family, uint8_t *base, struct count *count)
{
	const unsigned row = find_label(family->rows, family->row_count, count->row);
	const unsigned column =
		find_label(family->columns, family->column_count, count->column);

	if (row < family->row_count && column < family->column_count)
		add_count(family->shape,
			base + family->offset +
				(row * family->column_count + column) * family->stride,
			count);
}

static void add_to_tables(const struct count_table *table, void *owner, struct count *count)
{
	for (; table->families; table++) {
		for (size_t i = 0; i < table->count; i++) {
			const struct count_family *family = &table->families[i];
			void *base;

			if (strcmp(family->name, count->family) != 0)
				continue;
			base = table->place(owner, true);
			if (base)
				add_to_family(family, base, count);
			return;
		}
	}
}

static void add_all(
	const struct count_table *tables, void *owner, const void *field, size_t length)
{
	struct reader reader;
	struct count count;

	reader_init(&reader, field, length);
	while (read_count(&reader, &count))
		add_to_tables(tables, owner, &count);
}

void count_record_add_process(struct registry *registry, const void *field, size_t length)
{
	add_all(count_tables_of_process, registry, field, length);
}

void count_record_add_database(struct database *database, const void *field, size_t length)
{
	add_all(count_tables_of_database, database, field, length);
}

void count_record_add_pool(struct pool *pool, const void *field, size_t length)
{
	add_all(count_tables_of_pool, pool, field, length);
}
