/* SPDX-License-Identifier: ISC */
#include "support/fakes/fake_pool.h"

#include <errno.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <sys/un.h>
#include <unistd.h>

#include "model/link_walk.h"
#include "model/statistics/client_group.h"
#include "session/auth/external_auth.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/link/derivation.h"
#include "session/login/client_accept.h"
#include "session/relay/relay_rules.h"
#include "session/rules/life.h"
#include "session/rules/watching.h"
#include "session/serving/client_session.h"
#include "session/serving/control.h"
#include "session/serving/server_session.h"
#include "wire/report.h"
#include "wire/startup.h"
#include "wire/writer.h"

struct loop fake_loop;
struct process fake_process;
struct registry fake_registry;
unsigned fake_workers = 1;
struct fake_console fake_console;
int fake_connect_error;

static LIST_HEAD(, endpoint) endpoints = LIST_HEAD_INITIALIZER(endpoints);
static struct endpoint *launched[512]; /* the most recent ones, in order */
static unsigned launches, launches_returned;
static struct loop other_loops[FAKE_WORKERS_MOST - 1];
static struct registry other_registries[FAKE_WORKERS_MOST - 1];
static int last_key; /* of the endpoints that had to be found */
static usec_t now;
static char log_path[] = "/tmp/pgusher-test.XXXXXX";

/* --- streams ------------------------------------------------------------------------------ */

static struct endpoint *add_endpoint(struct link *link, enum sender sender)
{
	struct endpoint *endpoint = calloc(1, sizeof(*endpoint));

	assert_non_null(endpoint);
	endpoint->link = link;
	endpoint->sender = sender;
	LIST_INSERT_HEAD(&endpoints, endpoint, entry);
	return endpoint;
}

/* --- the mail ----------------------------------------------------------------------------- */

/* Nothing happens to a stream in the mail, whatever its script says. */
static const struct stream_handlers no_handlers;

static struct endpoint *find_key(int key)
{
	struct endpoint *endpoint;

	if (key >= -1)
		return NULL;
	LIST_FOREACH(endpoint, &endpoints, entry)
	if (endpoint->key == key)
		return endpoint;
	return NULL;
}

static void put_away(struct endpoint *endpoint)
{
	endpoint->link = NULL;
	endpoint->away.handlers = &no_handlers;
	endpoint->away.fd = endpoint->key;
	endpoint->away.paused = true;
	scripted_moved(endpoint->script, &endpoint->away);
}

static void deliver(struct endpoint *endpoint, struct stream *stream)
{
	assert_int_equal(stream->fd, endpoint->key);
	endpoint->link = (struct link *)stream;
	scripted_moved(endpoint->script, stream);
}

bool fake_is_in_mail(const struct endpoint *endpoint)
{
	return !endpoint->link && !is_closed(endpoint);
}

/* The linker replaces the functions of streams by these. */
void __wrap_stream_open(struct stream *stream, struct loop *loop, int fd,
	const struct stream_handlers *handlers);
bool __wrap_stream_connect(struct stream *stream, struct loop *loop,
	const struct sockaddr *address, socklen_t length, const struct tcp_options *options,
	const struct stream_handlers *handlers);
__typeof__(stream_leave) __real_stream_leave, __wrap_stream_leave;
__typeof__(stream_join) __real_stream_join, __wrap_stream_join;

void __wrap_stream_open(struct stream *stream, struct loop *loop, int fd,
	const struct stream_handlers *handlers)
{
	struct endpoint *endpoint = find_key(fd);

	if (!endpoint) {
		endpoint = add_endpoint((struct link *)stream, FROM_CLIENT);
		endpoint->script = scripted_open(stream, loop, handlers);
		return;
	}
	assert_true(fake_is_in_mail(endpoint));
	*stream = endpoint->away;
	stream->loop = loop;
	stream->handlers = handlers;
	stream->paused = false;
	deliver(endpoint, stream);
}

/* A client that moves is found again by its descriptor, which is none of the kernel's. */
void __wrap_stream_leave(struct stream *stream)
{
	struct endpoint *endpoint = find_key(stream->fd);

	assert_non_null(endpoint);
	__real_stream_leave(stream);
	put_away(endpoint);
}

bool __wrap_stream_join(
	struct stream *stream, struct loop *loop, const struct stream_handlers *handlers)
{
	struct endpoint *endpoint = find_key(stream->fd);

	assert_true(endpoint && fake_is_in_mail(endpoint));
	if (!__real_stream_join(stream, loop, handlers))
		return false;
	deliver(endpoint, stream);
	return true;
}

bool __wrap_stream_connect(struct stream *stream, struct loop *loop,
	const struct sockaddr *address, socklen_t length, const struct tcp_options *options,
	const struct stream_handlers *handlers)
{
	struct endpoint *endpoint;

	(void)options;
	assert_true(length > 0 && length <= sizeof(endpoint->where));
	if (fake_connect_error != 0) {
		errno = fake_connect_error;
		return false;
	}
	endpoint = add_endpoint((struct link *)stream, FROM_SERVER);
	memcpy(&endpoint->where, address, length);
	endpoint->script = scripted_connect(stream, loop, handlers);
	assert_true(launches - launches_returned < COUNT(launched));
	launched[launches++ % COUNT(launched)] = endpoint;
	return true;
}

/* --- fixtures ----------------------------------------------------------------------------- */

static usec_t fake_clock(void)
{
	return now;
}

static void on_console_begin(struct client_link *client)
{
	(void)client;
	fake_console.begun++;
}

static void on_console_readable(struct client_link *client)
{
	uint8_t bytes[256];
	const ssize_t got = stream_receive(&client->link.stream, bytes, sizeof(bytes));

	fake_console.readable++;
	if (got <= 0 && got != STREAM_AGAIN)
		client_close_for(client, REASON_CLIENT_UNEXPECTED_EOF);
}

static void on_console_canceled(struct client_link *client)
{
	(void)client;
	fake_console.canceled++;
}

static void on_console_closed(struct client_link *client)
{
	(void)client;
	fake_console.closed++;
}

/* The log goes to a file: tests search it, and it does not mix with their results. */
static void start_log(void)
{
	struct log_options options = {.file = log_path, .verbose = 1, .repeats = 5};
	int fd;

	memcpy(strrchr(log_path, '.'), ".XXXXXX", 7);
	fd = mkstemp(log_path);
	assert_true(fd >= 0);
	close(fd);
	assert_true(log_configure(&options));
}

unsigned fake_log_count(const char *text)
{
	static char said[1 << 20];
	FILE *file = fopen(log_path, "r");
	unsigned times = 0;
	size_t length;

	assert_non_null(file);
	length = fread(said, 1, sizeof(said) - 1, file);
	fclose(file);
	said[length] = '\0';
	for (const char *at = strstr(said, text); at; at = *at ? strstr(at + 1, text) : NULL)
		times++;
	return times;
}

bool fake_logged(const char *text)
{
	return fake_log_count(text) > 0;
}

/* Scripts of servers have no catalog, unless the test has one. */
static struct snapshot *without_functions(struct snapshot *snapshot, const char *config)
{
	static const char name[] = "session_functions_refresh";
	struct snapshot *changed;
	char why[256];

	if (strstr(config, name))
		return snapshot;
	changed = snapshot_with_setting(snapshot, name, "0", why, sizeof(why));
	assert_non_null(changed);
	snapshot_unref(snapshot);
	return changed;
}

struct registry *fake_registry_of(unsigned worker)
{
	return worker == 0 ? &fake_registry : &other_registries[worker - 1];
}

static struct loop *loop_of(unsigned worker)
{
	return worker == 0 ? &fake_loop : &other_loops[worker - 1];
}

/* As daemon/workers does, but without threads. */
static void start_loops(void)
{
	struct loop *loops[FAKE_WORKERS_MOST];

	assert_in_range(fake_workers, 1, FAKE_WORKERS_MOST);
	fake_process.workers_wanted = fake_workers;
	for (unsigned i = 0; i < fake_workers; i++) {
		loops[i] = loop_of(i);
		assert_true(loop_init(loops[i], &fake_process.clock));
		random_seed(&loops[i]->random, 1 + i);
	}
	assert_true(crew_init(&fake_process.crew, loops, fake_workers));
}

/* Locks are taken as with threads: a lock that is taken twice hangs here too. */
static void share_locks(void)
{
	lock_share(&fake_process.directory.lock);
	lock_share(&fake_process.tallies.lock);
	lock_share(&fake_process.cancel_keys.lock);
	lock_share(&fake_process.sources.lock);
	lock_share(&fake_process.own_connections.lock);
}

static void start_registry(struct registry *registry, struct loop *loop)
{
	*registry = (struct registry){0};
	life_attach(registry);
	assert_true(registry_init(registry, &fake_process, loop));
	assert_true(watching_follow(registry));
	assert_true(derivations_start(registry, 1, 64));
	registry->system_users = helper_new(loop, 1, 16);
	assert_non_null(registry->system_users);
}

void fake_start(const char *config)
{
	struct problems problems = {0};
	struct snapshot *snapshot =
		snapshot_parse("test.ini", config, strlen(config), NULL, &problems);

	for (size_t i = 0; i < problems.count && !snapshot; i++)
		print_error("%s\n", problems.list[i].log[0]);
	problems_free(&problems);
	assert_non_null(snapshot);
	snapshot = without_functions(snapshot, config);
	start_log();
	now = 1000 * USEC_PER_SEC;
	clock_set_source(fake_clock);
	fake_process = (struct process){
		.console = {on_console_begin, on_console_readable, on_console_canceled,
			on_console_closed},
	};
	start_loops();
	process_init(&fake_process, &fake_loop.random, snapshot);
	for (unsigned i = 0; i < fake_workers; i++)
		start_registry(fake_registry_of(i), loop_of(i));
	if (fake_workers > 1)
		share_locks();
	fake_console = (struct fake_console){0};
	fake_connect_error = 0;
	launches = launches_returned = 0;
}

struct pool *fake_start_pool(const char *settings)
{
	char config[1000];
	const int length = snprintf(config, sizeof(config),
		"[databases]\ndb = host=/tmp\n"
		"[pgbouncer]\npool_mode = transaction\nserver_reset_query =\n%s",
		settings);

	assert_in_range(length, 0, sizeof(config) - 1);
	fake_start(config);
	return fake_pool("db", "alice");
}

static void free_endpoint(struct endpoint *endpoint)
{
	LIST_REMOVE(endpoint, entry);
	scripted_free(endpoint->script);
	free(endpoint->backend);
	free(endpoint);
}

static void free_endpoints(void)
{
	while (!LIST_EMPTY(&endpoints))
		free_endpoint(LIST_FIRST(&endpoints));
}

void fake_forget(struct endpoint *endpoint)
{
	assert_true(is_closed(endpoint));
	free_endpoint(endpoint);
}

static void end_parts(struct registry *registry)
{
	(void)derivations_end(registry);
	(void)helper_leave(registry->system_users);
	external_auth_queue_free(registry->ldap);
	external_auth_queue_free(registry->pam);
	assert_int_equal(registry->clients.used, 0);
	assert_int_equal(registry->servers.used, 0);
	assert_int_equal(registry->helds.used, 0);
	assert_int_equal(registry->loop->backlogs.used, 0);
	for (unsigned i = 0; i < WHEEL_SLOTS; i++)
		assert_true(TAILQ_EMPTY(&registry->loop->wheel.slots[i]));
}

int fake_end(void **state)
{
	struct registry *each;

	(void)state;
	process_stop_others(&fake_process);
	control_close_all(&fake_registry, REASON_PROCESS_ENDS);
	process_let_others_run(&fake_process);
	EACH_REGISTRY (each, &fake_process)
		watching_end(each);
	fake_deliver();
	EACH_REGISTRY (each, &fake_process)
		end_parts(each);
	for (unsigned i = fake_workers; i > 0; i--)
		registry_free(fake_registry_of(i - 1));
	process_free(&fake_process);
	crew_free(&fake_process.crew);
	for (unsigned i = 0; i < fake_workers; i++)
		loop_free(loop_of(i));
	fake_workers = 1;
	last_key = 0;
	free_endpoints();
	clock_set_source(NULL);
	unlink(log_path);
	return 0;
}

/* As daemon/reload does. */
void fake_set(const char *name, const char *value)
{
	char why[256];
	struct snapshot *changed = snapshot_with_setting(
		fake_registry.process->config, name, value, why, sizeof(why));
	struct pool *pool;

	assert_non_null(changed);
	process_stop_others(&fake_process);
	snapshot_unref(fake_registry.process->config);
	fake_registry.process->config = changed;
	fake_registry.process->settings = snapshot_settings(changed);
	assert_true(registry_apply_databases(&fake_registry));
	TAILQ_FOREACH (pool, &fake_process.directory.pools, in_directory)
		pool_reconfigure(pool);
	process_let_others_run(&fake_process);
}

static void turn_all(void)
{
	for (unsigned i = 0; i < fake_workers; i++)
		crew_turn(loop_of(i), false);
}

void fake_turn(void)
{
	turn_all();
	fake_check();
}

static bool has_mail(void)
{
	for (unsigned i = 0; i < fake_workers; i++)
		if (mailbox_has_new(&loop_of(i)->mailbox))
			return true;
	return false;
}

void fake_deliver(void)
{
	do
		fake_turn();
	while (has_mail());
}

void fake_advance(usec_t time)
{
	const usec_t until = now + time;
	const usec_t step = USEC_PER_SEC / 4;

	/* The loop would take a larger step for a time in which the process was stopped. */
	while (now < until) {
		now = until - now > step ? now + step : until;
		turn_all();
	}
	fake_check();
}

void fake_wait(void)
{
	loop_turn(&fake_loop, true);
	fake_check();
}

struct user *fake_user(const char *name, const char *secret)
{
	for (unsigned i = fake_workers; i > 0; i--) {
		struct user *user = registry_open_user(fake_registry_of(i - 1), name);

		assert_non_null(user);
		user_set_secret(user, secret);
	}
	return registry_find_user(&fake_registry, name);
}

struct pool *fake_pool(const char *database_name, const char *user_name)
{
	struct database *database = registry_open_database(&fake_registry, database_name, NULL);
	struct registry *registry = database ? database->registry : NULL;
	struct user *user;
	struct pool *pool;

	assert_non_null(database);
	user = registry_open_user(registry, user_name);
	assert_non_null(user);
	pool = registry_open_pool(registry, database, user, TARGET_INHERIT);
	assert_non_null(pool);
	if (!pool->welcome) {
		pool->welcome = parameters_empty(registry->parameters);
		writer_authentication(&pool->welcome_head, AUTH_OK, NULL, 0);
	}
	return pool;
}

/* --- clients and servers ------------------------------------------------------------------ */

static struct parameters *start_values(const struct pool *pool)
{
	return pool->welcome ? parameters_ref(pool->welcome)
			     : parameters_empty(pool->registry->parameters);
}

struct endpoint *fake_client(struct pool *pool)
{
	struct registry *registry = pool->registry;
	struct client_link *client = slab_take(&registry->clients);
	struct endpoint *endpoint = add_endpoint(&client->link, FROM_CLIENT);

	endpoint->script =
		scripted_open(&client->link.stream, registry->loop, &client_session_handlers);
	client->link.kind = LINK_CLIENT;
	client->link.state = CLIENT_GREETING;
	client->link.id = ++registry->process->last_id;
	link_walk_enroll(registry, &client->link);
	client->link.parameters = start_values(pool);
	client->link.connect_time = client->link.request_time = loop_now(registry->loop);
	client->deadline.expire = client_limits_expire;
	TAILQ_INSERT_TAIL(&registry->logins, &client->link, place);
	registry->login_count++;
	limits_take_socket(registry);
	limits_take_database(client, pool->database, true);
	limits_take_user(client, pool->user, true);
	client_enter(client, CLIENT_AUTHENTICATING);
	client->link.pool = pool;
	assert_true(cancel_keys_issue(&registry->process->cancel_keys, client, CANCEL_KEY_MIN,
		&registry->loop->random));
	client_session_begin(client);
	fake_check();
	return endpoint;
}

struct endpoint *fake_server(struct pool *pool)
{
	struct registry *registry = pool->registry;
	struct server_link *server = slab_take(&registry->servers);
	struct endpoint *endpoint = add_endpoint(&server->link, FROM_SERVER);
	struct sockaddr_un *where = (struct sockaddr_un *)&server->where;

	endpoint->script =
		scripted_open(&server->link.stream, registry->loop, &server_session_handlers);
	server->link.kind = LINK_SERVER;
	server->link.state = SERVER_CONNECTING;
	server->link.pool = pool;
	server->link.id = ++registry->process->last_id;
	link_walk_enroll(registry, &server->link);
	server->link.parameters = start_values(pool);
	server_set_task(server, SERVER_TASK_NONE);
	server->link.connect_time = server->link.request_time = loop_now(registry->loop);
	server->transaction_status = 'I';
	where->sun_family = AF_UNIX;
	server->where_length = sizeof(*where);
	server->cancel_key_length = 8;
	server->cancel_key = malloc(server->cancel_key_length);
	random_fill(&registry->loop->random, server->cancel_key, server->cancel_key_length);
	TAILQ_INSERT_HEAD(&pool->servers[SERVERS_LOGIN], &server->link, place);
	pool->server_count[SERVERS_LOGIN]++;
	cap_take_server(pool);
	server_enter(server, SERVER_AUTHENTICATING);
	server_enter(server, SERVER_IDLE);
	fake_check();
	return endpoint;
}

/* The endpoint of a client that is in the mail. Returns its descriptor. */
static int prepare_mail(void)
{
	struct endpoint *endpoint = add_endpoint(NULL, FROM_CLIENT);

	endpoint->key = --last_key - 1;
	endpoint->script = scripted_open(&endpoint->away, NULL, &no_handlers);
	put_away(endpoint);
	return endpoint->key;
}

struct endpoint *fake_accept(int fd)
{
	struct sockaddr_in from = {
		.sin_family = AF_INET,
		.sin_port = htons(50000),
		.sin_addr.s_addr = htonl(0xc0000201),
	};

	if (fake_workers > 1) {
		assert_true(fd < 0);
		fd = prepare_mail();
	}
	client_accept(&fake_registry, fd, (struct sockaddr *)&from, sizeof(from), false);
	fake_check();
	return LIST_FIRST(&endpoints);
}

struct endpoint *fake_launched(void)
{
	return launches_returned < launches ? launched[launches_returned++ % COUNT(launched)]
					    : NULL;
}

struct endpoint *fake_next_endpoint(struct endpoint *after)
{
	return after ? LIST_NEXT(after, entry) : LIST_FIRST(&endpoints);
}

void fake_connected(struct endpoint *server, int error)
{
	scripted_connected(server->script, error);
	fake_turn();
}

bool is_closed(const struct endpoint *endpoint)
{
	return scripted_is_closed(endpoint->script);
}

struct link *endpoint_link(const struct endpoint *endpoint)
{
	assert_false(is_closed(endpoint));
	assert_non_null(endpoint->link);
	return endpoint->link;
}

void send_bytes(struct endpoint *endpoint, const void *data, size_t length)
{
	scripted_feed(endpoint->script, data, length);
	scripted_run_all(endpoint->script);
	fake_turn();
}

void send_buffer(struct endpoint *endpoint, struct buffer *buffer)
{
	assert_false(buffer->failed);
	send_bytes(endpoint, buffer->data, buffer->length);
	buffer_free(buffer);
}

void send_letters(struct endpoint *endpoint, const char *letters)
{
	struct buffer buffer;

	buffer_init(&buffer);
	letters_write(&buffer, endpoint->sender, letters);
	send_buffer(endpoint, &buffer);
}

void send_query(struct endpoint *client, const char *sql)
{
	struct buffer buffer;

	buffer_init(&buffer);
	writer_query(&buffer, sql);
	send_buffer(client, &buffer);
}

void send_error(struct endpoint *server, const char *sqlstate, const char *text)
{
	struct buffer buffer;

	buffer_init(&buffer);
	writer_error(&buffer, "FATAL", sqlstate, text);
	send_buffer(server, &buffer);
}

void send_parameter_status(struct endpoint *server, const char *name, const char *value)
{
	struct buffer buffer;

	buffer_init(&buffer);
	writer_parameter_status(&buffer, name, value);
	send_buffer(server, &buffer);
}

void send_startup(struct endpoint *client, uint32_t version, ...)
{
	struct buffer buffer;
	va_list pairs;
	const char *text;
	size_t mark;

	buffer_init(&buffer);
	mark = startup_begin(&buffer, version);
	va_start(pairs, version);
	while ((text = va_arg(pairs, const char *)) != NULL)
		writer_string(&buffer, text);
	va_end(pairs);
	startup_end(&buffer, mark);
	send_buffer(client, &buffer);
}

void disconnect(struct endpoint *endpoint)
{
	scripted_end(endpoint->script);
	scripted_run_all(endpoint->script);
	fake_turn();
}

void break_connection(struct endpoint *endpoint)
{
	scripted_break(endpoint->script);
	scripted_run_all(endpoint->script);
	fake_turn();
}

void allow_output(struct endpoint *endpoint, size_t room)
{
	scripted_allow(endpoint->script, room);
	scripted_run_all(endpoint->script);
	fake_turn();
}

static void note_error(struct endpoint *endpoint, const uint8_t *message, size_t total)
{
	struct report report;

	report_parse(message + 5, total - 5, &report);
	snprintf(endpoint->severity, sizeof(endpoint->severity), "%s",
		report.severity ? report.severity : "");
	snprintf(endpoint->sqlstate, sizeof(endpoint->sqlstate), "%s",
		report.sqlstate ? report.sqlstate : "");
	snprintf(endpoint->text, sizeof(endpoint->text), "%s", report.text ? report.text : "");
}

const char *read_letters(struct endpoint *endpoint)
{
	size_t length, total, count = 0;
	const uint8_t *output = scripted_output(endpoint->script, &length);
	char letter;

	while (endpoint->read_offset < length &&
		(letter = letters_read(output + endpoint->read_offset,
			 length - endpoint->read_offset, &total)) != 0) {
		assert_true(count < sizeof(endpoint->letters) - 2);
		endpoint->letters[count++] = letter;
		if (letter == 'E' && endpoint->sender == FROM_CLIENT)
			note_error(endpoint, output + endpoint->read_offset, total);
		endpoint->last = endpoint->read_offset;
		endpoint->read_offset += total;
	}
	if (endpoint->read_offset < length)
		endpoint->letters[count++] = '~';
	endpoint->letters[count] = '\0';
	return endpoint->letters;
}

size_t received_length(const struct endpoint *endpoint)
{
	size_t length;

	scripted_output(endpoint->script, &length);
	return length;
}

const uint8_t *received_body(const struct endpoint *endpoint, size_t *length)
{
	size_t all;
	const uint8_t *output = scripted_output(endpoint->script, &all);

	*length = endpoint->read_offset - endpoint->last - 5;
	return output + endpoint->last + 5;
}

/* --- the helper --------------------------------------------------------------------------- */

static sem_t held_up, blocked;

static void wait_for_release(struct helper_job *job)
{
	(void)job;
	sem_post(&blocked);
	while (sem_wait(&held_up) != 0)
		;
}

static void ignore_job(struct helper_job *job)
{
	(void)job;
}

void fake_block_helper(void)
{
	static struct helper_job job = {.work = wait_for_release, .done = ignore_job};

	sem_init(&held_up, 0, 0);
	sem_init(&blocked, 0, 0);
	assert_true(helper_submit(fake_registry.derivations->helper, &job));
	while (sem_wait(&blocked) != 0)
		;
}

void fake_release_helper(void)
{
	sem_post(&held_up);
}

void fake_wait_for_helper(void)
{
	fake_release_helper();
	while (helper_pending(fake_registry.derivations->helper) > 0 ||
		derivations_pending(&fake_registry) > 0)
		fake_wait();
}
