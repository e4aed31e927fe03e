/* SPDX-License-Identifier: ISC */
#include "admin/advice/advice.h"

#include "admin/advice/rules.h"

static const char *const severity_names[ADVICE_SEVERITIES] = {
	[ADVICE_INFO] = "info",
	[ADVICE_WARNING] = "warning",
	[ADVICE_CRITICAL] = "critical",
};

static const char *const codes[ADVICE_KINDS] = {
#define ADVICE(name, code, ...) [ADVICE_##name] = code,
#include "admin/advice/advice.def"
#undef ADVICE
};

const struct advice *advice_nth(const struct registry *registry, unsigned number)
{
	const struct advisor *advisor = registry->advisor;

	return advisor && number < advisor->findings.shown_count
		? advisor->findings.shown[number]
		: NULL;
}

const char *advice_code(const struct advice *advice)
{
	return codes[advice->kind];
}

enum advice_severity advice_severity(const struct advice *advice)
{
	return advice->severity;
}

const char *advice_severity_name(enum advice_severity severity)
{
	return severity_names[severity];
}

const char *advice_setting(const struct advice *advice)
{
	return advice->setting;
}

/* --- what it is about --------------------------------------------------------------------- */

struct pool *advice_pool(const struct registry *registry, const struct advice *advice)
{
	struct pool *pool;

	if (advice->pool == 0)
		return NULL;
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (pool->number == advice->pool)
			return pool;
	}
	return NULL;
}

uint64_t advice_pool_number(const struct advice *advice)
{
	return advice->pool;
}

const char *advice_database(const struct registry *registry, const struct advice *advice)
{
	(void)registry;
	return advice->database[0] ? advice->database : NULL;
}

const char *advice_user(const struct registry *registry, const struct advice *advice)
{
	(void)registry;
	return advice->user[0] ? advice->user : NULL;
}

usec_t advice_age(const struct advice *advice, usec_t now)
{
	return now - advice->since;
}

void advice_write(const struct advice *advice, bool with_names, struct buffer *out)
{
	(void)(process_advice_write(advice, with_names, out) ||
		host_advice_write(advice, with_names, out) ||
		database_advice_write(advice, with_names, out) ||
		limit_advice_write(advice, with_names, out) ||
		pool_advice_write(advice, with_names, out) ||
		full_advice_write(advice, with_names, out) ||
		transaction_advice_write(advice, with_names, out));
}
