/* SPDX-License-Identifier: ISC */
#include "setup/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

/* A part of the URL, as written. */
struct part {
	const char *at;
	size_t length;
};

struct parsing {
	struct pairs *out;
	char *why;
	size_t size;
};

static const char *const schemes[] = {"postgresql://", "postgres://"};

static bool refuse(const struct parsing *parsing, const char *reason)
{
	snprintf(parsing->why, parsing->size, "%s", reason);
	return false;
}

/* Returns the rest behind the scheme; NULL: another one, or none. */
static const char *behind_scheme(const char *url)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		const size_t length = strlen(schemes[i]);

		if (strncmp(url, schemes[i], length) == 0)
			return url + length;
	}
	return NULL;
}

bool url_is_one(const char *text)
{
	return behind_scheme(text) != NULL;
}

/* --- percent codes ------------------------------------------------------------------------ */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the byte that a code stands for; -1: it is no code, 0: NUL. */
static int code_at(const char *at, size_t length)
{
	const int high = length > 2 ? hex_digit(at[1]) : -1;
	const int low = high >= 0 ? hex_digit(at[2]) : -1;

	return low < 0 ? -1 : high * 16 + low;
}

/* Append the part without its percent codes. */
static bool decode(const struct parsing *parsing, struct part part, struct buffer *out)
{
	for (size_t i = 0; i < part.length; i++) {
		int byte = (unsigned char)part.at[i];
		char c;

		if (byte == '%') {
			byte = code_at(part.at + i, part.length - i);
			i += 2;
		}
		if (byte < 0)
			return refuse(parsing, "a % that begins no code is written %25");
		if (byte == 0)
			return refuse(parsing, "%00 is not allowed");
		c = (char)byte;
		if (!buffer_append(out, &c, 1))
			return refuse(parsing, "out of memory");
	}
	return true;
}

/* Add the part under a key; an empty part adds nothing. */
static bool add_part(const struct parsing *parsing, const char *key, struct part part)
{
	struct buffer text;
	bool done;

	if (part.length == 0)
		return true;
	buffer_init_secret(&text);
	done = decode(parsing, part, &text) &&
		((buffer_append(&text, "", 1) &&
			 pairs_add(parsing->out, key, (const char *)text.data)) ||
			refuse(parsing, "out of memory"));
	buffer_wipe(&text);
	return done;
}

/* --- parts -------------------------------------------------------------------------------- */

static bool read_user(const struct parsing *parsing, struct part user)
{
	const char *colon = memchr(user.at, ':', user.length);
	struct part password = {NULL, 0};

	if (colon) {
		password.at = colon + 1;
		password.length = user.length - (size_t)(password.at - user.at);
		user.length = (size_t)(colon - user.at);
	}
	return add_part(parsing, "user", user) && add_part(parsing, "password", password);
}

/* Split `host:port` or `[address]:port`. */
static bool split_host(
	const struct parsing *parsing, struct part item, struct part *host, struct part *port)
{
	const char *end;

	*host = item;
	*port = (struct part){item.at, 0};
	if (item.length > 0 && item.at[0] == '[') {
		end = memchr(item.at, ']', item.length);
		if (!end)
			return refuse(parsing, "an IPv6 address ends with ]");
		*host = (struct part){item.at + 1, (size_t)(end - item.at - 1)};
		if (host->length == 0)
			return refuse(parsing, "there is no address between [ and ]");
		end++;
		if (end < item.at + item.length && *end != ':')
			return refuse(
				parsing, "behind the ] of an address comes :PORT or nothing");
	} else {
		end = memchr(item.at, ':', item.length);
		if (!end)
			return true;
		host->length = (size_t)(end - item.at);
	}
	if (end == item.at + item.length)
		return true;
	*port = (struct part){end + 1, item.length - (size_t)(end + 1 - item.at)};
	if (memchr(port->at, ':', port->length))
		return refuse(parsing, "an IPv6 address is written between [ and ]");
	return true;
}

static bool add_item(
	const struct parsing *parsing, struct buffer *list, bool is_first, struct part item)
{
	return (is_first || buffer_append(list, ",", 1) || refuse(parsing, "out of memory")) &&
		decode(parsing, item, list);
}

/* A list without any item but empty ones is left out: the defaults are meant. */
static bool add_list(const struct parsing *parsing, const char *key, struct buffer *list)
{
	if (!buffer_append(list, "", 1))
		return refuse(parsing, "out of memory");
	if (strspn((const char *)list->data, ",") + 1 == list->length)
		return true;
	return pairs_add(parsing->out, key, (const char *)list->data) ||
		refuse(parsing, "out of memory");
}

static bool read_hosts(const struct parsing *parsing, struct part list)
{
	struct buffer hosts = {0}, ports = {0};
	bool done = true, is_first = true;

	for (const char *at = list.at, *end = list.at + list.length; done && at <= end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const struct part item = {at, (size_t)((comma ? comma : end) - at)};
		struct part host, port;

		done = split_host(parsing, item, &host, &port) &&
			add_item(parsing, &hosts, is_first, host) &&
			add_item(parsing, &ports, is_first, port);
		at = comma ? comma + 1 : end + 1;
		is_first = false;
	}
	done = done && add_list(parsing, "host", &hosts) && add_list(parsing, "port", &ports);
	buffer_free(&hosts);
	buffer_free(&ports);
	return done;
}

/* One `key=value`. */
static bool read_parameter(const struct parsing *parsing, struct part part)
{
	const char *equals = memchr(part.at, '=', part.length);
	struct buffer key = {0};
	struct part value;
	bool done;

	if (!equals || equals == part.at)
		return refuse(parsing, "a parameter behind the ? is KEY=VALUE");
	value.at = equals + 1;
	value.length = part.length - (size_t)(value.at - part.at);
	part.length = (size_t)(equals - part.at);
	done = decode(parsing, part, &key) &&
		(buffer_append(&key, "", 1) || refuse(parsing, "out of memory")) &&
		add_part(parsing, (const char *)key.data, value);
	buffer_free(&key);
	return done;
}

static bool read_parameters(const struct parsing *parsing, const char *at)
{
	while (*at) {
		const struct part part = {at, strcspn(at, "&")};

		if (part.length > 0 && !read_parameter(parsing, part))
			return false;
		at += part.length;
		at += *at == '&';
	}
	return true;
}

/*
 * Find where the user ends: at the @ before the first /. A further @ behind it, up to the next
 * part, belongs to a password that should have had a code for it.
 */
static bool check_signs(const struct parsing *parsing, const char *rest)
{
	const size_t authority = strcspn(rest, "/?");
	const char *at = memchr(rest, '@', authority);
	const char *path = rest + authority;

	if (at && memchr(at + 1, '@', authority - (size_t)(at + 1 - rest)))
		return refuse(parsing,
			"an @ in a user name or password is written %40, so there is one @");
	if (!at && *path == '/' && memchr(path, '@', strcspn(path, "?")))
		return refuse(parsing,
			"a / in a user name or password is written %2F, an @ in a database name %40");
	if (!at && *path == '?' && strchr(path, '@') && memchr(rest, ':', authority))
		return refuse(parsing,
			"a ? in a user name or password is written %3F, an @ in a value %40");
	return true;
}

bool url_parse(const char *url, struct pairs *out, char *why, size_t size)
{
	const struct parsing parsing = {out, why, size};
	const char *rest = behind_scheme(url);
	struct part user = {rest, 0}, hosts, dbname;

	if (!rest)
		return refuse(&parsing,
			"a URL begins with postgresql:// or postgres://, in small letters");
	if (!check_signs(&parsing, rest))
		return false;
	hosts = (struct part){rest, strcspn(rest, "/?")};
	if (memchr(rest, '@', hosts.length)) {
		user.length = strcspn(rest, "@");
		hosts.at += user.length + 1;
		hosts.length -= user.length + 1;
	}
	rest = hosts.at + hosts.length;
	dbname = (struct part){rest, 0};
	if (*rest == '/') {
		dbname = (struct part){rest + 1, strcspn(rest + 1, "?")};
		rest += 1 + dbname.length;
	}
	return read_user(&parsing, user) && read_hosts(&parsing, hosts) &&
		add_part(&parsing, "dbname", dbname) &&
		(*rest == '\0' || read_parameters(&parsing, rest + 1));
}
