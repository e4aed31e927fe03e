/* SPDX-License-Identifier: ISC */
/*
 * Three clients and the servers of a pool send anything, in any order, at any speed. All
 * conditions of fake_check() hold after each step (a server in the pool is clean, no client
 * waits beside a free server), and a link that is not paired was sent complete messages only.
 *
 * A seed is the pool's mode, and a sequence of steps: kind (see steps), actor, a length, that
 * many bytes.
 */
#include "support/fakes/fake_pool.h"
#include "wire/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CLIENTS = 3, SERVERS = 2, STEPS_MOST = 200, SIZE_MOST = 8192, STEP_HEADER = 3 };
enum { STORMS_MOST = 4, STORM_ROUNDS = 300, STORM_MESSAGES = 6 };

static const char *const modes[] = {"transaction", "session", "statement"};
static struct pool *pool;
static struct endpoint *clients[CLIENTS], *servers[SERVERS];
static unsigned repeats;

static void begin(uint8_t mode)
{
	char config[200];

	snprintf(config, sizeof(config),
		"[databases]\ndb = host=/nonexistent pool_size=2\n[pgbouncer]\n"
		"pool_mode = %s\npkt_buf = 64\nquery_wait_timeout = 20\n",
		modes[mode % COUNT(modes)]);
	fake_start(config);
	pool = fake_pool("db", "alice");
	for (int i = 0; i < CLIENTS; i++)
		clients[i] = fake_client(pool);
	for (int i = 0; i < SERVERS; i++)
		servers[i] = fake_server(pool);
}

/* --- steps -------------------------------------------------------------------------------- */

struct step {
	uint8_t endpoint;
	const uint8_t *bytes;
	uint8_t length;
};

static struct endpoint *client_of_step(const struct step *step)
{
	return clients[step->endpoint % CLIENTS];
}

static struct endpoint *server_of_step(const struct step *step)
{
	return servers[step->endpoint % SERVERS];
}

/* A client or a server. */
static struct endpoint *actor_of_step(const struct step *step)
{
	return step->endpoint & 1 ? client_of_step(step) : server_of_step(step);
}

/* Complete messages: each byte selects one. */
static void send_step(struct endpoint *endpoint, const char *known, const struct step *step)
{
	char letters[UINT8_MAX + 1] = "";

	for (unsigned i = 0; i < step->length; i++)
		letters[i] = known[step->bytes[i] % strlen(known)];
	send_letters(endpoint, letters);
}

static void client_messages(const struct step *step)
{
	send_step(client_of_step(step), "QPBDESHFCdcfpX", step);
}

/* Each byte is a message about one of a few statements: its kind, statement name and text. */
static void add_statement_message(struct buffer *out, uint8_t byte)
{
	static const char kinds[] = "PBDCESHQ";
	static const char *const names[] = {"", "a", "b", "name"};
	static const char *const texts[] = {"A", "B", "DEALLOCATE a", "DEALLOCATE ALL"};
	const char kind = kinds[byte & 7], *name = names[byte >> 3 & 3],
		   *text = texts[byte >> 5 & 3];
	const size_t mark = writer_begin(out, (uint8_t)kind);

	if (kind == 'D' || kind == 'C')
		writer_byte(out, byte & 0x80 ? 'P' : 'S');
	if (kind == 'B')
		writer_string(out, "");
	if (kind != 'S' && kind != 'H' && kind != 'Q')
		writer_string(out, kind == 'E' ? "" : name);
	if (kind == 'P' || kind == 'Q')
		writer_string(out, text);
	if (kind == 'P')
		writer_int16(out, 0);
	if (kind == 'B')
		writer_bytes(out, "\0\0\0\0\0\0", 6);
	if (kind == 'E')
		writer_int32(out, 0);
	writer_end(out, mark);
}

static void client_statements(const struct step *step)
{
	struct buffer all;

	buffer_init(&all);
	for (unsigned i = 0; i < step->length; i++)
		add_statement_message(&all, step->bytes[i]);
	send_buffer(client_of_step(step), &all);
}

/* Repeat the same few messages; limited by what an actor can receive. */
static void client_repeats(const struct step *step)
{
	struct buffer all;

	if (repeats == STORMS_MOST)
		return;
	repeats++;
	buffer_init(&all);
	for (unsigned i = 0; i < STORM_ROUNDS; i++) {
		for (unsigned j = 0; j < step->length && j < STORM_MESSAGES; j++)
			add_statement_message(&all, step->bytes[j]);
	}
	send_buffer(client_of_step(step), &all);
}

static void server_messages(const struct step *step)
{
	send_step(server_of_step(step), "ZTDCE>!12n3tsIVGdcNASHWK", step);
}

static void any_bytes(const struct step *step)
{
	send_bytes(actor_of_step(step), step->bytes, step->length);
}

static void peer_disconnects(const struct step *step)
{
	disconnect(actor_of_step(step));
}

static void peer_vanishes(const struct step *step)
{
	break_connection(actor_of_step(step));
}

/* The peer accepts a limited number of further bytes, or all again. */
static void peer_slows_down(const struct step *step)
{
	allow_output(actor_of_step(step), step->length ? step->length : SCRIPTED_ANY);
}

static void time_passes(const struct step *step)
{
	fake_advance((usec_t)step->length * (USEC_PER_SEC / 10));
}

/* The oldest requested server connection is established and logged in. */
static void server_connects(const struct step *step)
{
	struct endpoint *server = fake_launched();

	if (!server || is_closed(server))
		return;
	fake_connected(server, 0);
	send_letters(server, "RKZ");
	servers[step->endpoint % SERVERS] = server;
}

static void client_connects(const struct step *step)
{
	clients[step->endpoint % CLIENTS] = fake_client(pool);
}

static void (*const steps[])(const struct step *step) = {
	client_messages,
	server_messages,
	any_bytes,
	peer_disconnects,
	peer_vanishes,
	peer_slows_down,
	time_passes,
	server_connects,
	client_connects,
	client_statements,
	client_repeats,
};

/* --- checks ------------------------------------------------------------------------------- */

/*
 * A link that is not paired was sent complete messages, unless its partner closed in the
 * middle of one.
 */
static void check_whole(struct endpoint *endpoint, uint8_t alone)
{
	const char *letters = read_letters(endpoint);

	if (is_closed(endpoint) || endpoint_link(endpoint)->state != alone ||
		endpoint_link(endpoint)->cut)
		return;
	if (!stream_is_blocked(&endpoint_link(endpoint)->stream))
		assert_null(strchr(letters, '~'));
}

static void check_all_whole(void)
{
	for (int i = 0; i < CLIENTS; i++)
		check_whole(clients[i], CLIENT_IDLE);
	for (int i = 0; i < SERVERS; i++)
		check_whole(servers[i], SERVER_IDLE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0 || size > SIZE_MOST)
		return 0;
	repeats = 0;
	begin(*data++);
	size--;
	for (int i = 0; i < STEPS_MOST && size >= STEP_HEADER; i++) {
		struct step step = {data[1], data + STEP_HEADER, data[2]};

		if (step.length > size - STEP_HEADER)
			step.length = (uint8_t)(size - STEP_HEADER);
		steps[data[0] % COUNT(steps)](&step);
		check_all_whole();
		data += STEP_HEADER + step.length;
		size -= STEP_HEADER + step.length;
	}
	fake_end(NULL);
	return 0;
}
