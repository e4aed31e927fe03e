/* SPDX-License-Identifier: ISC */
/*
 * SHOW FDS: the descriptors that another process can take over, with their facts. The rows are
 * an interface between versions and programs. A process that takes over gets the descriptors
 * themselves along with the rows: see admin/console/pass_rows.
 */
#include "admin/show/show_stream.h"
#include "net/listener.h"
#include "session/serving/suspend.h"

static const struct column columns[] = {
	{"fd", COLUMN_INT4},
	{"task", COLUMN_TEXT},
	{"user", COLUMN_TEXT},
	{"database", COLUMN_TEXT},
	{"addr", COLUMN_TEXT},
	{"port", COLUMN_INT4},
	{"cancel", COLUMN_INT8},
	{"link", COLUMN_INT4},
	{"client_encoding", COLUMN_TEXT},
	{"std_strings", COLUMN_TEXT},
	{"datestyle", COLUMN_TEXT},
	{"timezone", COLUMN_TEXT},
	{"password", COLUMN_TEXT},
	{"scram_client_key", COLUMN_BYTEA},
	{"scram_server_key", COLUMN_BYTEA},
};

static void add_listener(struct result *result, const struct listener *listener)
{
	char text[ADDRESS_TEXT_SIZE];

	result_begin_row(result);
	result_number(result, listener->fd);
	result_text(result, "pooler");
	result_text(result, NULL);
	result_text(result, NULL);
	result_text(result, address_host(&listener->address, text));
	result_number(result, listener->address.port);
	result_number(result, 0);
	result_number(result, 0);
	for (unsigned i = 0; i < 5; i++)
		result_text(result, NULL);
	result_bytes(result, NULL, 0);
	result_bytes(result, NULL, 0);
	result_end_row(result);
}

/* The first eight bytes of a cancel key, as a number in network order; 0: none. */
static uint64_t key_number(const struct link *link)
{
	const struct client_link *client = (const struct client_link *)link;
	const struct server_link *server = (const struct server_link *)link;
	const bool is_client = link->kind == LINK_CLIENT;
	const uint8_t *key = is_client ? client->key : server->cancel_key;
	const unsigned length = is_client ? client->key_length : server->cancel_key_length;
	uint64_t number = 0;

	for (unsigned i = 0; i < 8 && length >= 8; i++)
		number = number << 8 | key[i];
	return number;
}

static void add_parameters(struct result *result, const struct link *link)
{
	static const char *const names[] = {
		"client_encoding", "standard_conforming_strings", "DateStyle", "TimeZone"};
	const struct parameter_table *table = link_registry(link)->parameters;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const int index = parameter_index(table, names[i]);

		result_text(result,
			link->parameters ? parameters_get(link->parameters, (unsigned)index)
					 : NULL);
	}
}

/* The secret and keys of the user of the pool's servers that are not in the configuration. */
static void add_secrets(struct result *result, const struct pool *pool)
{
	const struct user_keys *keys = pool ? pool_keys(pool) : NULL;
	const struct credential *learned = pool ? pool->credential : NULL;
	const bool known = keys && keys->client_key_known;

	result_text(result,
		learned && learned->secret[0] != '\0' && !pool->user->secret ? learned->secret
									     : NULL);
	result_bytes(result, known ? keys->keys.client_key : NULL, SCRAM_KEY_SIZE);
	result_bytes(result, known ? keys->keys.server_key : NULL, SCRAM_KEY_SIZE);
}

static void add_rows(struct show_stream *show, void *object, unsigned kind)
{
	struct result *result = &show->result;
	const struct link *link = object;
	char text[ADDRESS_TEXT_SIZE];

	(void)kind;
	/* No column marks a replication session, so such a link cannot be handed over. */
	if (link->stream.tls || (link->peer && link->peer->stream.tls) || link->stream.fd < 0 ||
		link_replication(link))
		return;
	result_begin_row(result);
	result_number(result, link->stream.fd);
	result_text(result, link->kind == LINK_CLIENT ? "client" : "server");
	result_text(result, link_user_name(link));
	result_text(result, link_database_name(link));
	result_text(result, address_host(&link->remote, text));
	result_number(result, link->remote.port);
	result_count(result, key_number(link));
	result_number(result, link->peer ? link->peer->stream.fd : 0);
	add_parameters(result, link);
	add_secrets(result, link->pool);
	result_end_row(result);
}

static void list_links(struct show_stream *show, const struct link_list *links)
{
	struct link *link;

	TAILQ_FOREACH (link, links, place)
		show_stream_add_object(show, &link->handle, link, 0);
}

/* Listeners have no handles: their rows are added at once. */
static void list(struct show_stream *show)
{
	/* Not those that listen: no column would tell their channels. */
	static const enum server_list order[] = {
		SERVERS_ACTIVE, SERVERS_IDLE, SERVERS_USED, SERVERS_TESTED, SERVERS_LOGIN};
	struct registry *registry = show->registry;
	const struct registry *each;
	const struct listener *listener = NULL;
	const struct pool *pool;

	show->result.kept.secret = true;
	/* The process that takes over assumes that the session of an idle server is clean. */
	suspend_check(registry);
	registry_sort(registry);
	while (registry->process->listeners &&
		(listener = listeners_next(registry->process->listeners, listener)) != NULL)
		add_listener(&show->result, listener);
	EACH_REGISTRY (each, registry->process)
		list_links(show, &each->logins);
	TAILQ_FOREACH (pool, &registry->process->directory.pools, in_directory) {
		if (pool->database->console)
			continue;
		list_links(show, &pool->clients);
		list_links(show, &pool->waiting);
		list_links(show, &pool->welcoming);
		for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
			list_links(show, &pool->servers[order[i]]);
	}
}

static const struct topic_walk walk = {.list = list, .add_rows = add_rows};

const struct topic show_fds = {
	"FDS", columns, sizeof(columns) / sizeof(columns[0]), NULL, RIGHT_ADMIN, &walk};
