/* SPDX-License-Identifier: ISC */
#include "admin/advice/advice.h"

static const char *const severity_names[ADVICE_SEVERITIES] = {
	[ADVICE_INFO] = "info",
	[ADVICE_WARNING] = "warning",
	[ADVICE_CRITICAL] = "critical",
};

const struct advice *advice_nth(const struct registry *registry, unsigned number)
{
	(void)registry;
	(void)number;
	return NULL;
}

const char *advice_code(const struct advice *advice)
{
	(void)advice;
	return "";
}

enum advice_severity advice_severity(const struct advice *advice)
{
	(void)advice;
	return ADVICE_INFO;
}

const char *advice_severity_name(enum advice_severity severity)
{
	return severity_names[severity];
}

const char *advice_setting(const struct advice *advice)
{
	(void)advice;
	return NULL;
}

struct pool *advice_pool(const struct registry *registry, const struct advice *advice)
{
	(void)registry;
	(void)advice;
	return NULL;
}

const char *advice_database(const struct registry *registry, const struct advice *advice)
{
	(void)registry;
	(void)advice;
	return NULL;
}

const char *advice_user(const struct registry *registry, const struct advice *advice)
{
	(void)registry;
	(void)advice;
	return NULL;
}

usec_t advice_age(const struct advice *advice, usec_t now)
{
	(void)advice;
	return now - now;
}

void advice_write(const struct advice *advice, bool with_names, struct buffer *out)
{
	(void)advice;
	(void)with_names;
	(void)out;
}
