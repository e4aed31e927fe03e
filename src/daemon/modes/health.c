/* SPDX-License-Identifier: ISC */
#include "daemon/modes/health.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/text.h"
#include "config/snapshot.h"
#include "daemon/modes/health_probe.h"
#include "daemon/modes/unfiled.h"
#include "net/address.h"
#include "net/network.h"

static const usec_t time_limit = 3 * USEC_PER_SEC;

enum { PLACE_SIZE = 300 };

struct asking {
	const struct snapshot *config;
	const struct settings *settings;
	struct health_probe probe;
	char user[128];
	bool asked; /* at least one place was asked */
	char place[PLACE_SIZE], why[300]; /* of the last question */
};

/* --- the user of the question ------------------------------------------------------------- */

/* The first name of a list that the auth_file has; false if it has none. */
static bool find_listed(const struct asking *asking, const char *names, char *out, size_t size)
{
	const struct userlist *users = snapshot_userlist(asking->config);

	while (text_next_item(&names, TEXT_LIST_SEPARATORS, out, size, NULL)) {
		if (userlist_find(users, out))
			return true;
	}
	return false;
}

static bool has_passwords(enum auth_type type)
{
	return type == AUTH_TYPE_MD5 || type == AUTH_TYPE_PLAIN ||
		type == AUTH_TYPE_SCRAM_SHA_256;
}

/* A database that is served; with a template alone any name will do. */
static const char *choose_database(const struct asking *asking)
{
	const struct database_config *first = snapshot_database(asking->config, 0);

	return first ? first->name : "postgres";
}

/*
 * A user of the auth_file is asked for its password at once; another one might be looked up at a
 * server, or be logged as unknown. The console is open to some users only, and needs no server; nor
 * does a database until there was a password.
 */
static void choose_login(struct asking *asking)
{
	const struct settings *settings = asking->settings;
	struct health_probe *probe = &asking->probe;
	const char *names = settings->admin_users, *secret;

	probe->database = "pgbouncer";
	probe->user = asking->user;
	if (find_listed(asking, settings->admin_users, asking->user, sizeof(asking->user)) ||
		find_listed(asking, settings->stats_users, asking->user, sizeof(asking->user)))
		return;
	if (has_passwords(settings->auth_type) &&
		userlist_entry(snapshot_userlist(asking->config), 0, &probe->user, &secret)) {
		probe->database = choose_database(asking);
		return;
	}
	if (!text_next_item(
		    &names, TEXT_LIST_SEPARATORS, asking->user, sizeof(asking->user), NULL))
		probe->user = "pgbouncer";
}

/* --- where to ask ------------------------------------------------------------------------- */

/* Whether the pooler expects a PROXY header of a connection from this machine to the address. */
static bool is_proxy(const struct asking *asking)
{
	const struct address address = address_of(
		(const struct sockaddr *)&asking->probe.address, asking->probe.length);
	struct network_list proxies = {0};
	bool found = false;

	if (asking->settings->proxy_protocol == PROXY_PROTOCOL_OFF ||
		!network_list_read(&proxies, asking->settings->proxy_networks))
		return false;
	for (unsigned i = 0; i < proxies.count; i++)
		found = found || network_has(&proxies.networks[i], &address);
	network_list_free(&proxies);
	return found;
}

static enum health ask_here(struct asking *asking)
{
	asking->asked = true;
	asking->probe.proxy_header = is_proxy(asking);
	return health_probe(&asking->probe, asking->why, sizeof(asking->why));
}

static enum health ask_socket(struct asking *asking)
{
	const struct settings *settings = asking->settings;
	struct sockaddr_un address;

	if (settings->unix_socket_dir[0] == '\0')
		return HEALTH_NO_ANSWER;
	snprintf(asking->place, sizeof(asking->place), "%s/.s.PGSQL.%d",
		settings->unix_socket_dir, settings->listen_port);
	asking->probe.length = address_unix(&address, asking->place);
	if (asking->probe.length == 0)
		return HEALTH_NO_ANSWER;
	memcpy(&asking->probe.address, &address, sizeof(address));
	/* TLS is for TCP only. */
	asking->probe.tls = false;
	return ask_here(asking);
}

/* Where one that listens on all addresses can be reached. */
static const char *reachable(const char *address)
{
	if (strcmp(address, "*") == 0 || strcmp(address, "0.0.0.0") == 0)
		return "127.0.0.1";
	return strcmp(address, "::") == 0 ? "::1" : address;
}

static enum health ask_address(struct asking *asking, const char *name)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	const int port = asking->settings->listen_port;
	enum health health = HEALTH_NO_ANSWER;
	struct addrinfo *found;
	char service[8];
	int error;

	snprintf(service, sizeof(service), "%d", port);
	snprintf(asking->place, sizeof(asking->place), strchr(name, ':') ? "[%s]:%d" : "%s:%d",
		name, port);
	error = getaddrinfo(name, service, &hints, &found);
	if (error != 0) {
		asking->asked = true;
		snprintf(asking->why, sizeof(asking->why), "%s", gai_strerror(error));
		return HEALTH_NO_ANSWER;
	}
	for (const struct addrinfo *at = found; at && health == HEALTH_NO_ANSWER;
		at = at->ai_next) {
		memcpy(&asking->probe.address, at->ai_addr, at->ai_addrlen);
		asking->probe.length = at->ai_addrlen;
		asking->probe.tls = asking->settings->client_tls_sslmode != TLS_MODE_DISABLE;
		asking->probe.no_certificate =
			asking->settings->client_tls_sslmode >= TLS_MODE_VERIFY_CA;
		health = ask_here(asking);
	}
	freeaddrinfo(found);
	return health;
}

static enum health ask_addresses(struct asking *asking)
{
	const char *cursor = asking->settings->listen_addr;
	enum health health = HEALTH_NO_ANSWER;
	char address[256];

	while (health == HEALTH_NO_ANSWER &&
		text_next_item(&cursor, TEXT_LIST_SEPARATORS, address, sizeof(address), NULL))
		health = ask_address(asking, reachable(address));
	return health;
}

/* A shutdown closes the listeners of TCP first: the socket alone is not enough then. */
static enum health ask_socket_after(struct asking *asking)
{
	const bool has_addresses = asking->asked;
	char addresses[sizeof(asking->place)];
	enum health health;

	if (clock_monotonic() >= asking->probe.deadline)
		return HEALTH_NO_ANSWER;
	memcpy(addresses, asking->place, sizeof(addresses));
	health = ask_socket(asking);
	if (health != HEALTH_ACCEPTS || !has_addresses)
		return health;
	snprintf(asking->why, sizeof(asking->why), "it answers at %.200s only", asking->place);
	memcpy(asking->place, addresses, sizeof(addresses));
	return HEALTH_REJECTS;
}

/*
 * The socket comes first where a connection over TCP would need a certificate or has to come from a
 * proxy: our own connections there need neither.
 */
static enum health ask_places(struct asking *asking)
{
	const bool socket_first = asking->settings->client_tls_sslmode >= TLS_MODE_VERIFY_CA ||
		asking->settings->proxy_protocol != PROXY_PROTOCOL_OFF;
	enum health health = socket_first ? ask_socket(asking) : ask_addresses(asking);

	if (health != HEALTH_NO_ANSWER)
		return health;
	return socket_first ? ask_addresses(asking) : ask_socket_after(asking);
}

/* --- the configuration -------------------------------------------------------------------- */

/* With --to a user is known, too. */
static struct snapshot *load_listen(const struct options *options, struct problems *problems)
{
	const struct arguments arguments = unfiled_arguments(options);
	struct snapshot *snapshot = NULL;
	struct draft *draft = draft_new();
	struct buffer text;
	char why[300] = "out of memory";

	buffer_init_secret(&text);
	if (draft && arguments_fill(draft, &arguments, why, sizeof(why)) &&
		draft_write(draft, DRAFT_SHOW_SECRETS, &text))
		snapshot = snapshot_parse(
			"--listen", (const char *)text.data, text.length, NULL, problems);
	else
		problems_add(problems, PROBLEM_ERROR, "--listen", 0, "%s", why);
	buffer_wipe(&text);
	draft_free(draft);
	return snapshot;
}

static struct snapshot *load(const struct options *options)
{
	const struct presets presets = {options->verbose, options->presets};
	struct problems problems = {0};
	const struct problem *first;
	struct snapshot *snapshot;

	snapshot = options->config ? snapshot_start(options->config, &presets, &problems)
				   : load_listen(options, &problems);
	first = problems_next(&problems, NULL);
	if (!snapshot)
		printf("%s\n", first ? first->text : "out of memory");
	problems_free(&problems);
	return snapshot;
}

static void print(const struct asking *asking, enum health health)
{
	if (!asking->asked)
		printf("the configuration listens nowhere\n");
	else if (health == HEALTH_ACCEPTS)
		printf("%s - accepting connections\n", asking->place);
	else if (health == HEALTH_REJECTS)
		printf("%s - rejecting connections: %s\n", asking->place, asking->why);
	else
		printf("%s - no response: %s\n", asking->place, asking->why);
}

enum health health_ask(const struct options *options)
{
	struct asking asking = {.config = load(options)};
	enum health health;

	if (!asking.config)
		return HEALTH_NOT_ASKED;
	asking.settings = snapshot_settings(asking.config);
	choose_login(&asking);
	asking.probe.deadline = clock_monotonic() + time_limit;
	health = ask_places(&asking);
	if (!asking.asked)
		health = HEALTH_NOT_ASKED;
	print(&asking, health);
	snapshot_unref((struct snapshot *)asking.config);
	return health;
}
