/* SPDX-License-Identifier: ISC */
#include "setup/arguments.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "setup/target.h"

struct filling {
	struct draft *draft;
	const struct arguments *arguments;
	char *why;
	size_t size;
};

static bool refuse(const struct filling *filling, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static bool refuse(const struct filling *filling, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(filling->why, filling->size, format, arguments);
	va_end(arguments);
	return false;
}

static bool set(const struct filling *filling, const char *name, const char *value)
{
	char reason[200];

	return draft_set(filling->draft, name, value, reason, sizeof(reason)) ||
		refuse(filling, "%s = %s: %s", name, draft_hides(name) ? "..." : value, reason);
}

static bool set_default(const struct filling *filling, const char *name, const char *value)
{
	return draft_get(filling->draft, name) || set(filling, name, value);
}

/* --- --listen ----------------------------------------------------------------------------- */

enum { PLACE_SIZE = 256 };

static bool refuse_place(const struct filling *filling, const char *place)
{
	return refuse(filling,
		"--listen %s: allowed is PORT, ADDRESS, ADDRESS:PORT, [IPV6]:PORT, or the FOLDER of "
		"a Unix socket",
		place);
}

/* There is one port for all addresses and sockets. */
static bool take_port(const struct filling *filling, const char *place, const char *port)
{
	const char *former = draft_get(filling->draft, "listen_port");
	long long number;

	if (port[0] < '0' || port[0] > '9' || !text_to_integer(port, &number) || number < 1 ||
		number > 65535)
		return refuse_place(filling, place);
	if (former && strcmp(former, port) != 0)
		return refuse(filling, "--listen %s: one port is for all of them, and it is %s",
			place, former);
	return set(filling, "listen_port", port);
}

static bool take_address(const struct filling *filling, const char *place, const char *address)
{
	const char *former = draft_get(filling->draft, "listen_addr");
	char list[4 * PLACE_SIZE];

	if (address[0] == '\0' || strpbrk(address, " ,"))
		return refuse_place(filling, place);
	if (!former)
		return set(filling, "listen_addr", address);
	if ((size_t)snprintf(list, sizeof(list), "%s,%s", former, address) >= sizeof(list))
		return refuse(filling, "--listen: too many addresses");
	return set(filling, "listen_addr", list);
}

static bool take_folder(const struct filling *filling, const char *place)
{
	if (draft_get(filling->draft, "unix_socket_dir"))
		return refuse(
			filling, "--listen %s: there is one folder of Unix sockets", place);
	return set(filling, "unix_socket_dir", place);
}

/* `[address]:port` or `[address]` */
static bool take_bracketed(const struct filling *filling, const char *place)
{
	const char *end = strchr(place, ']');
	char address[PLACE_SIZE];

	if (!end || (end[1] != '\0' && end[1] != ':'))
		return refuse_place(filling, place);
	snprintf(address, sizeof(address), "%.*s", (int)(end - place - 1), place + 1);
	return take_address(filling, place, address) &&
		(end[1] == '\0' || take_port(filling, place, end + 2));
}

/* Without an address before the colon all of them are meant, as in other programs. */
static bool take_place(const struct filling *filling, const char *place)
{
	const char *colon = strchr(place, ':');
	char address[PLACE_SIZE];

	if (strlen(place) >= PLACE_SIZE)
		return refuse(filling, "--listen: the address is too long");
	if (place[0] == '/' || place[0] == '@')
		return take_folder(filling, place);
	if (place[0] == '[')
		return take_bracketed(filling, place);
	if (!colon && place[strspn(place, "0123456789")] == '\0')
		return take_address(filling, place, "127.0.0.1") &&
			take_port(filling, place, place);
	if (!colon)
		return take_address(filling, place, place);
	if (strchr(colon + 1, ':'))
		return refuse_place(filling, place);
	snprintf(address, sizeof(address), "%.*s", (int)(colon - place), place);
	return take_address(filling, place, colon == place ? "*" : address) &&
		take_port(filling, place, colon + 1);
}

static bool take_places(const struct filling *filling)
{
	const char *const *place = filling->arguments->listen;

	for (; place && *place; place++) {
		if (!take_place(filling, *place))
			return false;
	}
	if (!draft_get(filling->draft, "unix_socket_dir") &&
		!set_default(filling, "listen_addr", "127.0.0.1"))
		return false;
	return set_default(filling, "listen_port", "6432") &&
		set_default(filling, "unix_socket_dir", "");
}

/* --- --to --------------------------------------------------------------------------------- */

static bool add_default(
	const struct filling *filling, struct pairs *pairs, const char *key, const char *value)
{
	return pairs_find(pairs, key) || !value || value[0] == '\0' ||
		pairs_add(pairs, key, value) || refuse(filling, "out of memory");
}

/* Without a name of the database, clients choose one of the server's by its name. */
static bool put_target(const struct filling *filling, struct pairs *pairs)
{
	const char *dbname = pairs_find(pairs, "dbname");
	const char *entry = dbname && dbname[0] != '\0' ? dbname : "*";
	const struct problem *left_out;
	char reason[300];

	if (!pairs_find(pairs, "host"))
		return refuse(filling, "--to: it has no host");
	if (!target_put(filling->draft, entry, pairs, "--to", reason, sizeof(reason)))
		return refuse(filling, "--to: %s", reason);
	left_out = problems_next(draft_findings(filling->draft), NULL);
	return !left_out || refuse(filling, "--to: %s", left_out->text);
}

static bool is_local(const char *address)
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, address, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, address, &six) == 1)
		return IN6_IS_ADDR_LOOPBACK(&six);
	return strcmp(address, "localhost") == 0;
}

/* Without a password of the server, any client that can connect is let in. */
static bool let_all_in(const struct filling *filling)
{
	const char *cursor = draft_get(filling->draft, "listen_addr");
	char address[PLACE_SIZE];

	while (cursor &&
		text_next_item(&cursor, TEXT_LIST_SEPARATORS, address, sizeof(address), NULL)) {
		if (!is_local(address))
			return refuse(filling,
				"--listen %s: without a password in --to (or PGPASSWORD) clients "
				"need none, so only local addresses are allowed",
				address);
	}
	return draft_remark(filling->draft, DRAFT_MAIN, "auth_type",
		       "The server user has no password, so clients need none: local addresses "
		       "only.") &&
		set_default(filling, "auth_type", "any");
}

static bool set_logins(const struct filling *filling, const char *user, const char *password)
{
	char reason[200];

	if (!set_default(filling, "admin_users", user))
		return false;
	if (!password)
		return let_all_in(filling);
	if (!draft_add_user(filling->draft, user, password, reason, sizeof(reason)))
		return refuse(filling, "--to: %s", reason);
	return set_default(filling, "auth_type", "scram-sha-256");
}

static bool take_target(const struct filling *filling, struct pairs *pairs)
{
	const struct arguments *arguments = filling->arguments;
	char reason[300];

	if (!target_parse(arguments->to, pairs, reason, sizeof(reason)))
		return refuse(filling, "--to: %s", reason);
	if (!add_default(filling, pairs, "user", arguments->user) ||
		!add_default(filling, pairs, "password", arguments->password))
		return false;
	if (!pairs_find(pairs, "user"))
		return refuse(filling, "--to: it has no user");
	return put_target(filling, pairs) &&
		set_logins(filling, pairs_find(pairs, "user"), pairs_find(pairs, "password"));
}

/* --- all ---------------------------------------------------------------------------------- */

static bool take_preset(const struct filling *filling, const char *preset)
{
	const char *equals = strchr(preset, '=');
	char name[64];

	if (!equals || (size_t)(equals - preset) >= sizeof(name))
		return refuse(filling, "--preset %s: a preset is NAME=VALUE", preset);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - preset), preset);
	return set(filling, name, equals + 1);
}

static bool take_presets(const struct filling *filling)
{
	const char *const *preset = filling->arguments->presets;

	for (; preset && *preset; preset++) {
		if (!take_preset(filling, *preset))
			return false;
	}
	return true;
}

bool arguments_fill(
	struct draft *draft, const struct arguments *arguments, char *why, size_t size)
{
	const struct filling filling = {draft, arguments, why, size};
	struct pairs pairs = {0};
	bool done = take_places(&filling) && take_presets(&filling);

	if (done && arguments->to)
		done = take_target(&filling, &pairs) &&
			set_default(&filling, "pool_mode", "transaction");
	pairs_free(&pairs);
	return done;
}
