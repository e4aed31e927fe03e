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

static void *object_of(const struct registry *registry, uint64_t handle)
{
	return handle > 0 ? handles_find(&registry->process->handles, handle) : NULL;
}

struct pool *advice_pool(const struct registry *registry, const struct advice *advice)
{
	return object_of(registry, advice->pool);
}

const char *advice_database(const struct registry *registry, const struct advice *advice)
{
	const struct pool *pool = advice_pool(registry, advice);
	const struct database *database = object_of(registry, advice->database);

	if (pool)
		return pool->label;
	return database ? database->name : NULL;
}

const char *advice_user(const struct registry *registry, const struct advice *advice)
{
	const struct pool *pool = advice_pool(registry, advice);
	const struct user *user = object_of(registry, advice->user);

	if (pool)
		return pool->user->name;
	return user ? user->name : NULL;
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
