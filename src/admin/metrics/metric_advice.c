/* SPDX-License-Identifier: ISC */
/* Metrics of SHOW ADVICE. */
#include <string.h>

#include "admin/advice/advice.h"
#include "admin/metrics/metric_sources.h"

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool is_alike(
	const struct registry *registry, const struct advice *a, const struct advice *b)
{
	return strcmp(advice_code(a), advice_code(b)) == 0 &&
		is_same(advice_database(registry, a), advice_database(registry, b)) &&
		is_same(advice_user(registry, a), advice_user(registry, b));
}

/*
 * Advice about several hosts, or certificates, differs in its sentence only: it is one sample. Returns
 * the number of the first that is like this one.
 */
static unsigned first_alike(const struct registry *registry, unsigned number)
{
	const struct advice *advice = advice_nth(registry, number);
	unsigned first = 0;

	while (first < number && !is_alike(registry, advice_nth(registry, first), advice))
		first++;
	return first;
}

static void collect_advice(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const struct registry *registry = context->registry;
	const struct advice *advice;

	(void)detail;
	for (unsigned i = 0; (advice = advice_nth(registry, i)) != NULL; i++) {
		const struct metric_number figures = {advice_age(advice, context->now)};

		if (first_alike(registry, i) < i)
			continue;
		metric_samples_label(samples, "code", advice_code(advice));
		metric_samples_label(samples, "database", advice_database(registry, advice));
		metric_samples_label(samples, "user", advice_user(registry, advice));
		metric_samples_add(samples, &figures);
	}
}

const struct metric_source metric_advice = {collect_advice, sizeof(struct metric_number), NULL};
