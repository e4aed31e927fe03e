/* SPDX-License-Identifier: ISC */
/*
 * One row per kind of value: how its text is parsed into the field, and how the field is
 * printed. Kinds with keywords as values share the same functions and differ in their
 * keywords.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cores.h"
#include "base/nearest.h"
#include "base/text.h"
#include "config/settings_parts.h"
#include "net/network.h"
#include "net/service_name.h"
#include "wire/pin_causes.h"

/* --- error texts -------------------------------------------------------------------------- */

static void list_words(const struct setting_row *row, char *out, size_t size)
{
	const char *before = "";
	size_t length = 0;

	for (const struct setting_word *word = row->kind->words; word->text; word++) {
		if (word->absent)
			continue;
		if (length < size)
			length += (size_t)snprintf(
				out + length, size - length, "%s%s", before, word->text);
		before = ", ";
	}
}

void settings_allowed(const struct setting_row *row, char *out, size_t size)
{
	const char *what = row->kind->allowed;

	if (row->kind->words)
		list_words(row, out, size);
	else if (row->most < LLONG_MAX)
		snprintf(out, size, "%s from %lld to %lld", what, row->least, row->most);
	else if (row->least > LLONG_MIN)
		snprintf(out, size, "%s, at least %lld", what, row->least);
	else if (row->kind->takes_minus)
		snprintf(out, size, "%s, at least 0, or -1, which is read as 0", what);
	else
		snprintf(out, size, "%s", what);
}

static bool refuse(const struct setting_request *request)
{
	const size_t length = (size_t)snprintf(request->why, request->size, "allowed is ");

	if (length < request->size)
		settings_allowed(request->row, request->why + length, request->size - length);
	return false;
}

static bool refuse_no_memory(const struct setting_request *request)
{
	snprintf(request->why, request->size, "out of memory");
	return false;
}

/* --- kinds -------------------------------------------------------------------------------- */

static bool is_within(const struct setting_request *request, long long number)
{
	const struct setting_row *row = request->row;

	if (row->kind->takes_minus && row->least == LLONG_MIN && number < -1)
		return false;
	return number >= row->least && number <= row->most;
}

static bool read_integer(const struct setting_request *request, void *field)
{
	long long number;

	if (!text_to_integer(request->text, &number) || !is_within(request, number) ||
		number < INT_MIN || number > INT_MAX)
		return refuse(request);
	*(int *)field = (int)number;
	return true;
}

static const char *render_integer(const void *field, char *out, size_t size)
{
	snprintf(out, size, "%d", *(const int *)field);
	return out;
}

static bool read_count(const struct setting_request *request, void *field)
{
	int number;

	if (!read_integer(request, &number))
		return false;
	*(int *)field = number < 0 ? 0 : number;
	return true;
}

bool pool_size_is_auto(const char *text)
{
	return strcasecmp(text, "auto") == 0;
}

const char *pool_size_hint(const char *text)
{
	struct nearest nearest = {.asked = text};

	nearest_consider(&nearest, "auto");
	return nearest.found ? ": did you mean auto?" : "";
}

static bool read_pool_size(const struct setting_request *request, void *field)
{
	size_t length;

	if (pool_size_is_auto(request->text)) {
		*(int *)field = POOL_SIZE_AUTO;
		return true;
	}
	if (read_count(request, field))
		return true;
	length = strlen(request->why);
	snprintf(request->why + length, request->size - length, "%s",
		pool_size_hint(request->text));
	return false;
}

static const char *render_pool_size(const void *field, char *out, size_t size)
{
	return *(const int *)field == POOL_SIZE_AUTO ? "auto"
						     : render_integer(field, out, size);
}

/* The conventional port of such metrics, used for `on`. */
enum { METRICS_PORT_USUAL = 9127 };

static bool read_metrics_port(const struct setting_request *request, void *field)
{
	if (strcasecmp(request->text, "on") == 0)
		*(int *)field = METRICS_PORT_USUAL;
	else if (strcasecmp(request->text, "off") == 0)
		*(int *)field = 0;
	else
		return read_integer(request, field);
	return true;
}

/* A number, or a percentage from 0 to 100. */
static bool read_share(const struct setting_request *request, void *field)
{
	const size_t length = strlen(request->text);
	char text[16];
	long long number;

	if (length == 0 || length > sizeof(text) || request->text[length - 1] != '%')
		return read_count(request, field);
	text_copy(text, length, request->text);
	if (!text_to_integer(text, &number) || number < 0 || number > 100)
		return refuse(request);
	*(int *)field = -(int)number;
	return true;
}

static const char *render_share(const void *field, char *out, size_t size)
{
	const int share = *(const int *)field;

	if (share >= 0)
		return render_integer(field, out, size);
	snprintf(out, size, "%d%%", -share);
	return out;
}

/* A number without a unit could be either: only 0 needs none. */
bool standby_lag_of(const char *text, standby_lag *out)
{
	const size_t length = strlen(text);
	unsigned long long size;
	usec_t duration;

	*out = 0;
	if (strcmp(text, "0") == 0)
		return true;
	if (length == 0 || strchr("0123456789", text[length - 1]))
		return false;
	if (text_to_size(text, &size)) {
		*out = (standby_lag)size;
		return size <= INT64_MAX;
	}
	if (!text_to_duration(text, &duration) || duration < 0)
		return false;
	*out = -duration;
	return true;
}

static bool read_standby_lag(const struct setting_request *request, void *field)
{
	standby_lag lag;

	if (!standby_lag_of(request->text, &lag))
		return refuse(request);
	*(standby_lag *)field = lag;
	return true;
}

static const char *render_standby_lag(const void *field, char *out, size_t size)
{
	const standby_lag lag = *(const standby_lag *)field;

	if (lag < 0)
		snprintf(out, size, "%lli%s", -(long long)lag / (lag % 1000 ? 1 : 1000),
			lag % 1000 ? "us" : "ms");
	else
		snprintf(out, size, "%lli%s", (long long)lag, lag > 0 ? "B" : "");
	return out;
}

static bool read_boolean(const struct setting_request *request, void *field)
{
	long long number;

	if (!text_to_integer(request->text, &number))
		return refuse(request);
	*(bool *)field = number != 0;
	return true;
}

static const char *render_boolean(const void *field, char *out, size_t size)
{
	snprintf(out, size, "%d", *(const bool *)field);
	return out;
}

/* Parse a size up to `limit`. */
static bool read_size(
	const struct setting_request *request, unsigned long long limit, long long *out)
{
	unsigned long long bytes;
	long long number;

	if (!text_to_integer(request->text, &number) || number >= 0) {
		if (!text_to_size(request->text, &bytes) || bytes > limit)
			return refuse(request);
		number = (long long)bytes;
	}
	if (!is_within(request, number))
		return refuse(request);
	*out = number < 0 ? 0 : number;
	return true;
}

static bool read_bytes(const struct setting_request *request, void *field)
{
	long long bytes = 0;

	if (!read_size(request, INT_MAX, &bytes))
		return false;
	*(int *)field = (int)bytes;
	return true;
}

static bool read_unsigned(const struct setting_request *request, void *field)
{
	long long bytes = 0;

	if (!read_size(request, UINT32_MAX, &bytes))
		return false;
	*(uint32_t *)field = (uint32_t)bytes;
	return true;
}

static const char *render_unsigned(const void *field, char *out, size_t size)
{
	snprintf(out, size, "%u", *(const uint32_t *)field);
	return out;
}

static bool read_duration(const struct setting_request *request, void *field)
{
	usec_t duration;

	if (!text_to_duration(request->text, &duration))
		return refuse(request);
	*(usec_t *)field = duration;
	return true;
}

static const char *render_duration(const void *field, char *out, size_t size)
{
	snprintf(out, size, "%g", (double)*(const usec_t *)field / USEC_PER_SEC);
	return out;
}

/*
 * Parse a time in whole `unit`s: a C integer (-1 counts as 0), or a duration with a unit, which
 * ends in a letter.
 */
static bool read_whole(const struct setting_request *request, usec_t unit, int *out)
{
	const size_t length = strlen(request->text);
	usec_t duration;
	long long number;

	if (!text_to_integer(request->text, &number)) {
		if (length == 0 || (request->text[length - 1] | 0x20) < 'a' ||
			!text_to_duration(request->text, &duration) || duration % unit != 0)
			return refuse(request);
		number = duration / unit;
	}
	if (!is_within(request, number) || number > INT_MAX)
		return refuse(request);
	*out = number < 0 ? 0 : (int)number;
	return true;
}

static bool read_whole_seconds(const struct setting_request *request, void *field)
{
	return read_whole(request, USEC_PER_SEC, field);
}

static bool read_whole_milliseconds(const struct setting_request *request, void *field)
{
	return read_whole(request, USEC_PER_MSEC, field);
}

/* As PostgreSQL's log_min_duration_statement: milliseconds, or with a unit; -1 is off. */
static bool read_log_duration(const struct setting_request *request, void *field)
{
	usec_t duration;
	long long number;

	if (!text_to_integer(request->text, &number)) {
		if (!text_to_duration(request->text, &duration))
			return refuse(request);
	} else if (number < -1 || number > INT_MAX) {
		return refuse(request);
	} else {
		duration = number < 0 ? -1 : number * USEC_PER_MSEC;
	}
	*(usec_t *)field = duration;
	return true;
}

static const char *render_log_duration(const void *field, char *out, size_t size)
{
	const usec_t duration = *(const usec_t *)field;

	if (duration < 0)
		snprintf(out, size, "-1");
	else if (duration % USEC_PER_MSEC == 0)
		snprintf(out, size, "%lld", (long long)(duration / USEC_PER_MSEC));
	else
		snprintf(out, size, "%lldus", (long long)duration);
	return out;
}

static bool read_string(const struct setting_request *request, void *field)
{
	char **text = field;
	char *copy = strdup(request->text);

	if (!copy)
		return refuse_no_memory(request);
	if (*text)
		explicit_bzero(*text, strlen(*text)); /* it may be a password */
	free(*text);
	*text = copy;
	return true;
}

static const char *render_string(const void *field, char *out, size_t size)
{
	(void)out;
	(void)size;
	return *(char *const *)field;
}

static bool read_database_name(const struct setting_request *request, void *field)
{
	if (strcmp(request->text, "pgbouncer") == 0) {
		snprintf(request->why, request->size,
			"cannot use the reserved \"pgbouncer\" database as an %s",
			request->row->name);
		return false;
	}
	return read_string(request, field);
}

static bool read_network_list(
	const struct setting_request *request, void *field, bool allows_unix)
{
	const char *cursor = request->text;
	struct network network;
	bool good;

	while (network_list_next(&cursor, &network, &good)) {
		if (!good || (network.family == AF_UNIX && !allows_unix))
			return refuse(request);
	}
	return read_string(request, field);
}

static bool read_networks(const struct setting_request *request, void *field)
{
	return read_network_list(request, field, false);
}

static bool read_proxy_networks(const struct setting_request *request, void *field)
{
	return read_network_list(request, field, true);
}

static bool read_cores(const struct setting_request *request, void *field)
{
	struct core_list list;

	return core_list_read(request->text, &list) ? read_string(request, field)
						    : refuse(request);
}

static bool read_service_name(const struct setting_request *request, void *field)
{
	struct service_name name;

	if (request->text[0] != '\0' && !service_name_read(request->text, &name))
		return refuse(request);
	return read_string(request, field);
}

static bool read_pin_causes(const struct setting_request *request, void *field)
{
	session_topics topics;

	if (!pin_causes_read(request->text, &topics))
		return refuse(request);
	return read_string(request, field);
}

static bool read_word(const struct setting_request *request, void *field)
{
	const struct setting_word *word =
		setting_find_word(request->row->kind->words, request->text);

	if (!word)
		return refuse(request);
	*(unsigned *)field = word->value;
	return true;
}

/* Console users must not learn the password for the LDAP server. */
static const char *render_ldap_options(const void *field, char *out, size_t size)
{
	const char *text = render_string(field, out, size);

	if (!text || !strcasestr(text, "passwd"))
		return text;
	snprintf(out, size, "(hidden: it has a password)");
	return out;
}

/* Nor a password of our own. */
static const char *render_password(const void *field, char *out, size_t size)
{
	const char *text = render_string(field, out, size);

	if (!text || text[0] == '\0')
		return text;
	snprintf(out, size, "(hidden)");
	return out;
}

#define KIND(NAME, ...)                                                                        \
	const struct setting_kind setting_kind_##NAME = {                                      \
		.size = sizeof(SETTING_TYPE_##NAME), __VA_ARGS__}
#define WHOLE .allowed = "a whole number"
#define SIZE .allowed = "a number of bytes, or one with B, kB, MB or GB", .takes_minus = true
#define WHOLE_TIME(unit)                                                                       \
	.allowed = "a whole number of " unit ", or a time with ms, s, min, h or d",            \
	.takes_minus = true
#define TEXT                                                                                   \
	.allowed = "any text", .read = read_string, .render = render_string, .is_text = true
KIND(INTEGER, WHOLE, .read = read_integer, .render = render_integer);
KIND(COUNT, WHOLE, .takes_minus = true, .read = read_count, .render = render_integer);
KIND(POOL_SIZE, .allowed = "auto, or a whole number", .takes_minus = true,
	.read = read_pool_size, .render = render_pool_size);
KIND(METRICS_PORT, .allowed = "on, off, or a whole number", .read = read_metrics_port,
	.render = render_integer);
KIND(BOOLEAN, .allowed = "1 (on) or 0 (off)", .read = read_boolean, .render = render_boolean);
KIND(BYTES, SIZE, .read = read_bytes, .render = render_integer);
KIND(UNSIGNED, SIZE, .read = read_unsigned, .render = render_unsigned);
KIND(DURATION, .allowed = "a number of seconds, or one with us, ms, s, min, h or d",
	.read = read_duration, .render = render_duration);
KIND(WHOLE_SECONDS, WHOLE_TIME("seconds"), .read = read_whole_seconds,
	.render = render_integer);
KIND(WHOLE_MILLISECONDS, WHOLE_TIME("milliseconds"), .read = read_whole_milliseconds,
	.render = render_integer);
KIND(LOG_DURATION,
	.allowed = "a number of milliseconds, or one with us, ms, s, min, h or d; -1 is off",
	.read = read_log_duration, .render = render_log_duration);
KIND(STRING, TEXT, .comment = SETTING_COMMENT_DOUBTED);
KIND(NAMES, TEXT);
KIND(FREE_TEXT, TEXT, .comment = SETTING_COMMENT_NONE);
KIND(LDAP_OPTIONS, .allowed = "any text", .read = read_string, .render = render_ldap_options,
	.is_text = true, .comment = SETTING_COMMENT_NONE);
KIND(PASSWORD, .allowed = "any text", .read = read_string, .render = render_password,
	.is_text = true, .comment = SETTING_COMMENT_NONE);
KIND(NETWORKS,
	.allowed =
		"addresses and networks such as 10.0.0.0/8 and fd00::/8, separated by commas",
	.read = read_networks, .render = render_string, .is_text = true);
KIND(PROXY_NETWORKS,
	.allowed = "addresses, networks such as 10.0.0.0/8 and fd00::/8, and the word unix, "
		   "separated by commas",
	.read = read_proxy_networks, .render = render_string, .is_text = true);
KIND(CORES, .allowed = "numbers and ranges of processors such as 0-3 or 0 2 4",
	.read = read_cores, .render = render_string, .is_text = true);
KIND(SERVICE_NAME, .allowed = "dns:NAME or dns:NAME:PORT", .read = read_service_name,
	.render = render_string, .is_text = true);
KIND(DATABASE_NAME, .allowed = "any name but pgbouncer", .read = read_database_name,
	.render = render_string, .is_text = true, .comment = SETTING_COMMENT_DOUBTED);
KIND(PIN_CAUSES, .allowed = PIN_CAUSES_ALLOWED, .read = read_pin_causes,
	.render = render_string, .is_text = true);
KIND(POOL_MODE, .read = read_word, .words = pool_mode_words);
KIND(AUTH_TYPE, .read = read_word, .words = auth_type_words);
KIND(TLS_MODE, .read = read_word, .words = tls_mode_words);
KIND(TLS_NEGOTIATION, .read = read_word, .words = tls_negotiation_words);
KIND(COMPAT_VERSION, .read = read_word, .words = compat_version_words);
KIND(STARTUP_POLICY, .read = read_word, .words = startup_policy_words);
KIND(LOG_FORMAT, .read = read_word, .words = log_format_words);
KIND(LISTEN_MODE, .read = read_word, .words = listen_mode_words);
KIND(PROXY_PROTOCOL, .read = read_word, .words = proxy_protocol_words);
KIND(WAIT_ACTION, .read = read_word, .words = wait_action_words);
KIND(SESSION_STATE, .read = read_word, .words = session_state_words);
KIND(TARGET_SESSION, .read = read_word, .words = target_session_words);
KIND(LOAD_BALANCE, .read = read_word, .words = load_balance_words);
KIND(ROLE_CHECK, .read = read_word, .words = role_check_words);
KIND(STANDBY_LAG,
	.allowed = "a size with B, kB, MB or GB, or a time with us, ms, s, min, h or d",
	.read = read_standby_lag, .render = render_standby_lag);
KIND(SHARE, .allowed = "a whole number, or a percentage such as 50%", .takes_minus = true,
	.read = read_share, .render = render_share);
#undef WHOLE
#undef SIZE
#undef WHOLE_TIME
#undef TEXT
#undef KIND
