/* SPDX-License-Identifier: ISC */
#include "support/fakes/fake_pool.h"

#include <errno.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <sys/un.h>
#include <unistd.h>

#include "model/client_group.h"
#include "model/link_walk.h"
#include "session/auth/external_auth.h"
#include "session/link/client_limits.h"
#include "session/link/close.h"
#include "session/login/client_greeting.h"
#include "session/relay/relay_rules.h"
#include "session/rules/life.h"
#include "session/work/client_session.h"
#include "session/work/control.h"
#include "session/work/server_session.h"
#include "wire/report.h"
#include "wire/startup.h"
#include "wire/writer.h"

struct loop fake_loop;
struct process fake_process;
struct registry fake_registry;
struct fake_console fake_console;
bool fake_refuses_connects;

static LIST_HEAD(, actor) actors = LIST_HEAD_INITIALIZER(actors);
static struct actor *launched[512]; /* the most recent ones, in order */
static unsigned launches, launches_told;
static usec_t now;
static char log_path[] = "/tmp/pgusher-test.XXXXXX";

/* --- streams ------------------------------------------------------------------------------ */

static struct actor *add_actor(struct link *link, enum speaker speaker)
{
	struct actor *actor = calloc(1, sizeof(*actor));

	assert_non_null(actor);
	actor->link = link;
	actor->speaker = speaker;
	LIST_INSERT_HEAD(&actors, actor, entry);
	return actor;
}

/* The linker replaces stream_open() and stream_connect() by these. */
void __wrap_stream_open(struct stream *stream, struct loop *loop, int fd,
	const struct stream_handlers *handlers);
bool __wrap_stream_connect(struct stream *stream, struct loop *loop,
	const struct sockaddr *address, socklen_t length,
	const struct stream_handlers *handlers);

void __wrap_stream_open(struct stream *stream, struct loop *loop, int fd,
	const struct stream_handlers *handlers)
{
	struct actor *actor = add_actor((struct link *)stream, CLIENT_SPEAKS);

	(void)fd;
	actor->script = scripted_open(stream, loop, handlers);
}

bool __wrap_stream_connect(struct stream *stream, struct loop *loop,
	const struct sockaddr *address, socklen_t length,
	const struct stream_handlers *handlers)
{
	struct actor *actor;

	(void)address;
	assert_true(length > 0);
	if (fake_refuses_connects) {
		errno = ECONNREFUSED;
		return false;
	}
	actor = add_actor((struct link *)stream, SERVER_SPEAKS);
	actor->script = scripted_connect(stream, loop, handlers);
	assert_true(launches - launches_told < COUNT(launched));
	launched[launches++ % COUNT(launched)] = actor;
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

unsigned fake_logged_times(const char *text)
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
	return fake_logged_times(text) > 0;
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
	start_log();
	now = 1000 * USEC_PER_SEC;
	clock_set_source(fake_clock);
	assert_true(loop_init(&fake_loop));
	random_seed(&fake_loop.random, 1);
	fake_process = (struct process){
		.console = {on_console_begin, on_console_readable, on_console_canceled,
			on_console_closed},
	};
	process_init(&fake_process, &fake_loop.random, snapshot);
	fake_registry = (struct registry){0};
	life_attach(&fake_registry);
	assert_true(registry_init(&fake_registry, &fake_process, &fake_loop));
	fake_registry.derivations = helper_new(&fake_loop, 1, 16);
	fake_registry.system_users = helper_new(&fake_loop, 1, 16);
	assert_non_null(fake_registry.derivations);
	assert_non_null(fake_registry.system_users);
	fake_console = (struct fake_console){0};
	fake_refuses_connects = false;
	launches = launches_told = 0;
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

static void free_actor(struct actor *actor)
{
	LIST_REMOVE(actor, entry);
	scripted_free(actor->script);
	free(actor->backend);
	free(actor);
}

static void free_actors(void)
{
	while (!LIST_EMPTY(&actors))
		free_actor(LIST_FIRST(&actors));
}

void fake_forget(struct actor *actor)
{
	assert_true(is_gone(actor));
	free_actor(actor);
}

int fake_end(void **state)
{
	(void)state;
	control_drop_all(&fake_registry, REASON_PROCESS_ENDS);
	fake_turn();
	helper_free(fake_registry.derivations);
	helper_free(fake_registry.system_users);
	external_auth_queue_free(fake_registry.ldap);
	external_auth_queue_free(fake_registry.pam);
	assert_int_equal(fake_registry.clients.used, 0);
	assert_int_equal(fake_registry.servers.used, 0);
	assert_int_equal(fake_registry.helds.used, 0);
	assert_int_equal(fake_loop.backlogs.used, 0);
	for (unsigned i = 0; i < WHEEL_SLOTS; i++)
		assert_true(TAILQ_EMPTY(&fake_loop.wheel.slots[i]));
	registry_free(&fake_registry);
	process_free(&fake_process);
	loop_free(&fake_loop);
	free_actors();
	clock_set_source(NULL);
	unlink(log_path);
	return 0;
}

void fake_set(const char *name, const char *value)
{
	char why[256];
	struct snapshot *changed = snapshot_with_setting(
		fake_registry.process->config, name, value, why, sizeof(why));
	struct pool *pool;

	assert_non_null(changed);
	snapshot_unref(fake_registry.process->config);
	fake_registry.process->config = changed;
	fake_registry.process->settings = snapshot_settings(changed);
	assert_true(registry_apply_databases(&fake_registry));
	TAILQ_FOREACH (pool, &fake_registry.pools, in_registry)
		pool_reconfigure(pool);
}

void fake_turn(void)
{
	loop_turn(&fake_loop, false);
	fake_check();
}

void fake_advance(usec_t time)
{
	const usec_t until = now + time;
	const usec_t step = USEC_PER_SEC / 4;

	/* The loop would take a larger step for a time in which the process was stopped. */
	while (now < until) {
		now = until - now > step ? now + step : until;
		loop_turn(&fake_loop, false);
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
	struct user *user = registry_open_user(&fake_registry, name);

	assert_non_null(user);
	user_set_secret(user, secret);
	return user;
}

struct pool *fake_pool(const char *database_name, const char *user_name)
{
	struct database *database = registry_open_database(&fake_registry, database_name, NULL);
	struct user *user = registry_open_user(&fake_registry, user_name);
	struct pool *pool;

	assert_non_null(database);
	assert_non_null(user);
	pool = registry_open_pool(&fake_registry, database, user);
	assert_non_null(pool);
	if (!pool->welcome) {
		pool->welcome = parameters_empty(fake_registry.parameters);
		writer_authentication(&pool->welcome_head, AUTH_OK, NULL, 0);
	}
	return pool;
}

/* --- clients and servers ------------------------------------------------------------------ */

static struct parameters *start_values(const struct pool *pool)
{
	return pool->welcome ? parameters_ref(pool->welcome)
			     : parameters_empty(fake_registry.parameters);
}

struct actor *fake_client(struct pool *pool)
{
	struct registry *registry = &fake_registry;
	struct client_link *client = slab_take(&registry->clients);
	struct actor *actor = add_actor(&client->link, CLIENT_SPEAKS);

	actor->script =
		scripted_open(&client->link.stream, &fake_loop, &client_session_handlers);
	client->link.kind = LINK_CLIENT;
	client->link.state = CLIENT_GREETING;
	client->link.id = ++registry->process->last_id;
	link_walk_enroll(registry, &client->link);
	client->link.parameters = start_values(pool);
	client->link.connect_time = client->link.request_time = loop_now(&fake_loop);
	client->deadline.expire = client_limits_expire;
	TAILQ_INSERT_TAIL(&registry->logins, &client->link, place);
	registry->login_count++;
	limits_take_socket(registry);
	limits_take_database(client, pool->database, true);
	limits_take_user(client, pool->user, true);
	client_enter(client, CLIENT_AUTHENTICATING);
	client->link.pool = pool;
	assert_true(cancel_keys_issue(
		&registry->process->cancel_keys, client, CANCEL_KEY_MIN, &fake_loop.random));
	client_session_begin(client);
	fake_check();
	return actor;
}

struct actor *fake_server(struct pool *pool)
{
	struct registry *registry = &fake_registry;
	struct server_link *server = slab_take(&registry->servers);
	struct actor *actor = add_actor(&server->link, SERVER_SPEAKS);
	struct sockaddr_un *where = (struct sockaddr_un *)&server->where;

	actor->script =
		scripted_open(&server->link.stream, &fake_loop, &server_session_handlers);
	server->link.kind = LINK_SERVER;
	server->link.state = SERVER_CONNECTING;
	server->link.pool = pool;
	server->link.id = ++registry->process->last_id;
	link_walk_enroll(registry, &server->link);
	server->link.parameters = start_values(pool);
	server_set_task(server, SERVER_TASK_NONE);
	server->link.connect_time = server->link.request_time = loop_now(&fake_loop);
	server->transaction_status = 'I';
	where->sun_family = AF_UNIX;
	server->where_length = sizeof(*where);
	server->cancel_key_length = 8;
	server->cancel_key = malloc(server->cancel_key_length);
	random_fill(&fake_loop.random, server->cancel_key, server->cancel_key_length);
	TAILQ_INSERT_HEAD(&pool->servers[SERVERS_LOGIN], &server->link, place);
	pool->server_count[SERVERS_LOGIN]++;
	limits_take_server(pool);
	server_enter(server, SERVER_AUTHENTICATING);
	server_enter(server, SERVER_IDLE);
	fake_check();
	return actor;
}

struct actor *fake_accept(int fd)
{
	struct sockaddr_in from = {
		.sin_family = AF_INET,
		.sin_port = htons(50000),
		.sin_addr.s_addr = htonl(0xc0000201),
	};

	client_greeting_accept(
		&fake_registry, fd, (struct sockaddr *)&from, sizeof(from), false);
	fake_check();
	return LIST_FIRST(&actors);
}

struct actor *fake_launched(void)
{
	return launches_told < launches ? launched[launches_told++ % COUNT(launched)] : NULL;
}

struct actor *fake_next_actor(struct actor *after)
{
	return after ? LIST_NEXT(after, entry) : LIST_FIRST(&actors);
}

void fake_connected(struct actor *server, int error)
{
	scripted_connected(server->script, error);
	fake_turn();
}

bool is_gone(const struct actor *actor)
{
	return scripted_is_closed(actor->script);
}

struct link *actor_link(const struct actor *actor)
{
	assert_false(is_gone(actor));
	return actor->link;
}

void say_bytes(struct actor *actor, const void *data, size_t length)
{
	scripted_feed(actor->script, data, length);
	scripted_run_all(actor->script);
	fake_turn();
}

void say_buffer(struct actor *actor, struct buffer *buffer)
{
	assert_false(buffer->failed);
	say_bytes(actor, buffer->data, buffer->length);
	buffer_free(buffer);
}

void say(struct actor *actor, const char *letters)
{
	struct buffer buffer;

	buffer_init(&buffer);
	letters_write(&buffer, actor->speaker, letters);
	say_buffer(actor, &buffer);
}

void say_query(struct actor *client, const char *sql)
{
	struct buffer buffer;

	buffer_init(&buffer);
	writer_query(&buffer, sql);
	say_buffer(client, &buffer);
}

void say_error(struct actor *server, const char *sqlstate, const char *text)
{
	struct buffer buffer;

	buffer_init(&buffer);
	writer_error(&buffer, "FATAL", sqlstate, text);
	say_buffer(server, &buffer);
}

void say_parameter(struct actor *server, const char *name, const char *value)
{
	struct buffer buffer;

	buffer_init(&buffer);
	writer_parameter_status(&buffer, name, value);
	say_buffer(server, &buffer);
}

void say_startup(struct actor *client, uint32_t version, ...)
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
	say_buffer(client, &buffer);
}

void leave(struct actor *actor)
{
	scripted_end(actor->script);
	scripted_run_all(actor->script);
	fake_turn();
}

void vanish(struct actor *actor)
{
	scripted_break(actor->script);
	scripted_run_all(actor->script);
	fake_turn();
}

void allow(struct actor *actor, size_t room)
{
	scripted_allow(actor->script, room);
	scripted_run_all(actor->script);
	fake_turn();
}

static void note_error(struct actor *actor, const uint8_t *message, size_t total)
{
	struct report report;

	report_parse(message + 5, total - 5, &report);
	snprintf(actor->severity, sizeof(actor->severity), "%s",
		report.severity ? report.severity : "");
	snprintf(actor->sqlstate, sizeof(actor->sqlstate), "%s",
		report.sqlstate ? report.sqlstate : "");
	snprintf(actor->text, sizeof(actor->text), "%s", report.text ? report.text : "");
}

const char *hear(struct actor *actor)
{
	size_t length, total, count = 0;
	const uint8_t *output = scripted_output(actor->script, &length);
	char letter;

	while (actor->heard < length &&
		(letter = letters_read(output + actor->heard, length - actor->heard, &total)) !=
			0) {
		assert_true(count < sizeof(actor->letters) - 2);
		actor->letters[count++] = letter;
		if (letter == 'E' && actor->speaker == CLIENT_SPEAKS)
			note_error(actor, output + actor->heard, total);
		actor->last = actor->heard;
		actor->heard += total;
	}
	if (actor->heard < length)
		actor->letters[count++] = '~';
	actor->letters[count] = '\0';
	return actor->letters;
}

size_t heard_bytes(const struct actor *actor)
{
	size_t length;

	scripted_output(actor->script, &length);
	return length;
}

const uint8_t *heard_body(const struct actor *actor, size_t *length)
{
	size_t all;
	const uint8_t *output = scripted_output(actor->script, &all);

	*length = actor->heard - actor->last - 5;
	return output + actor->last + 5;
}

/* --- the helper --------------------------------------------------------------------------- */

static sem_t held_up;

static void wait_for_release(struct helper_job *job)
{
	(void)job;
	while (sem_wait(&held_up) != 0)
		;
}

static void ignore_job(struct helper_job *job)
{
	(void)job;
}

void fake_hold_up_helper(void)
{
	static struct helper_job job = {.work = wait_for_release, .done = ignore_job};

	sem_init(&held_up, 0, 0);
	assert_true(helper_submit(fake_registry.derivations, &job));
}

void fake_wait_for_helper(void)
{
	sem_post(&held_up);
	while (helper_pending(fake_registry.derivations) > 0)
		fake_wait();
}
