/* SPDX-License-Identifier: ISC */
/*
 * Derivations take turns in slices, so that expensive ones do not hold up others; they end with
 * their login, and the end of the process does not wait for them.
 */
#include "session/link/derivation.h"
#include "session/link/login.h"
#include "support/fakes/fake_pool.h"

enum { MANY = SCRAM_MAX_ITERATIONS, COMMON = 4096, CLIENTS = 40 };

static struct client_link clients[CLIENTS];
static struct derivation *handles[CLIENTS];
static struct user *users[CLIENTS];
static unsigned done_count, failed_count;
static struct link *last_done;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\n");
	for (unsigned i = 0; i < CLIENTS; i++) {
		char name[20];

		snprintf(name, sizeof(name), "user%u", i);
		users[i] = registry_open_user(&fake_registry, name);
		handles[i] = NULL;
		clients[i] = (struct client_link){
			.link = {.kind = LINK_CLIENT,
				.remote = {.family = AF_INET, .bytes = {10, 0, 0, (uint8_t)i}}},
			.user = users[i],
		};
	}
	done_count = failed_count = 0;
	last_done = NULL;
	return 0;
}

static void on_derived(struct registry *registry, const struct derivation_owner *owner,
	const struct scram_secret *parameters, const struct scram_keys *keys)
{
	struct scram_keys expected;

	assert_ptr_equal(registry, &fake_registry);
	done_count++;
	failed_count += keys == NULL;
	last_done = owner->link;
	if (keys && parameters->iterations == COMMON) {
		assert_true(scram_derive("pencil", parameters->salt, parameters->salt_length,
			parameters->iterations, &expected));
		assert_memory_equal(keys, &expected, sizeof(expected));
	}
}

static bool try_to_derive(unsigned i, unsigned user, unsigned host, uint32_t iterations)
{
	const struct scram_secret parameters = {.iterations = iterations, .salt_length = 4};
	const struct derivation_owner owner = {
		.link = &clients[i].link,
		.handle = &handles[i],
	};

	clients[i].user = users[user];
	clients[i].link.remote.bytes[3] = (uint8_t)host;
	return derivation_start(&fake_registry, &owner, "pencil", &parameters, on_derived);
}

static void derive(unsigned i, unsigned user, unsigned host, uint32_t iterations)
{
	assert_true(try_to_derive(i, user, host, iterations));
	assert_non_null(handles[i]);
}

static void wait_until_done(unsigned count)
{
	while (done_count < count)
		fake_wait();
}

static void abandon_all(void)
{
	for (unsigned i = 0; i < CLIENTS; i++)
		derivation_abandon(handles[i]);
	while (derivations_pending(&fake_registry) > 0)
		fake_wait();
}

static void test_keys_are_delivered(void **state)
{
	(void)state;
	derive(0, 0, 0, COMMON);
	wait_until_done(1);
	assert_int_equal(failed_count, 0);
	assert_null(handles[0]);
	assert_int_equal(derivations_pending(&fake_registry), 0);
}

static void test_invalid_parameters_fail(void **state)
{
	(void)state;
	derive(0, 0, 0, SCRAM_MAX_ITERATIONS + 1);
	wait_until_done(1);
	assert_int_equal(failed_count, 1);
}

/* Else the common one would come last. */
static void test_expensive_derivations_of_one_user_do_not_hold_up_another(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 10; i++)
		derive(i, 1, i, MANY);
	derive(0, 0, 0, COMMON);
	wait_until_done(1);
	assert_ptr_equal(last_done, &clients[0].link);
	abandon_all();
	assert_int_equal(done_count, 1);
}

static void test_expensive_derivations_of_one_address_do_not_hold_up_another(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 10; i++)
		derive(i, i, 1, MANY);
	derive(0, 0, 0, COMMON);
	wait_until_done(1);
	assert_ptr_equal(last_done, &clients[0].link);
	abandon_all();
}

static void test_servers_that_demand_many_iterations_do_not_hold_up_clients(void **state)
{
	static struct server_link servers[10];
	static struct derivation *derivations[10];
	const struct scram_secret parameters = {.iterations = MANY, .salt_length = 4};

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		const struct derivation_owner owner = {
			.link = &servers[i].link,
			.handle = &derivations[i],
		};

		servers[i] = (struct server_link){
			.link = {.kind = LINK_SERVER,
				.remote = {.family = AF_INET, .port = (uint16_t)i}},
		};
		assert_true(derivation_start(
			&fake_registry, &owner, "secret", &parameters, on_derived));
	}
	derive(0, 0, 0, COMMON);
	wait_until_done(1);
	assert_ptr_equal(last_done, &clients[0].link);
	for (unsigned i = 0; i < 10; i++)
		derivation_abandon(derivations[i]);
	abandon_all();
}

static void test_clients_do_not_hold_up_servers(void **state)
{
	struct server_link server = {.link = {.kind = LINK_SERVER}};
	struct derivation *derivation;
	const struct scram_secret parameters = {.iterations = COMMON, .salt_length = 4};
	const struct derivation_owner owner = {.link = &server.link, .handle = &derivation};

	(void)state;
	for (unsigned i = 0; i < CLIENTS; i++)
		derive(i, i, i, MANY);
	assert_true(
		derivation_start(&fake_registry, &owner, "pencil", &parameters, on_derived));
	wait_until_done(1);
	assert_ptr_equal(last_done, &server.link);
	abandon_all();
}

/* A slice that runs is abandoned at its next look at the flag, others at once. */
static void test_abandoned_derivation_ends(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CLIENTS; i++)
		derive(i, i, i, MANY);
	assert_int_equal(derivations_pending(&fake_registry), CLIENTS);
	for (unsigned i = 0; i < CLIENTS; i++) {
		derivation_abandon(handles[i]);
		assert_null(handles[i]);
	}
	assert_true(derivations_pending(&fake_registry) <=
		fake_registry.derivations->submitted_most);
	while (derivations_pending(&fake_registry) > 0)
		fake_wait();
	assert_int_equal(done_count, 0);
}

static void test_one_source_gets_a_quarter_of_the_queue(void **state)
{
	(void)state;
	fake_block_helper();
	for (unsigned i = 0; i < 16; i++)
		derive(i, 1, i, MANY); /* the queue of the tests has 64 places */
	assert_false(try_to_derive(16, 1, 16, MANY)); /* the same user */
	for (unsigned i = 16; i < 31; i++)
		derive(i, i, 15, MANY);
	assert_false(try_to_derive(31, 31, 15, MANY)); /* the same address */
	derive(31, 31, 31, MANY);
	assert_int_equal(derivations_pending(&fake_registry), 32);
	for (unsigned i = 0; i < CLIENTS; i++)
		derivation_abandon(handles[i]);
	fake_wait_for_helper();
	/* Places are given back. */
	derive(0, 1, 15, COMMON);
	wait_until_done(1);
}

/* The keys of a verifier are for all logins of its user: until nothing needs them any more. */
static void test_verifier_is_derived_as_long_as_something_needs_it(void **state)
{
	const struct scram_secret parameters = {.iterations = MANY, .salt_length = 4};
	struct user_keys *keys = user_keys_new(NULL);
	const struct derivation_owner owner = {.link = &clients[0].link, .into = keys};
	struct login login = {0};

	(void)state;
	assert_true(
		derivation_start(&fake_registry, &owner, "pencil", &parameters, on_derived));
	TAILQ_INSERT_TAIL(&keys->waiting, &login, in_awaited);
	user_keys_unref(keys); /* the secret was dropped, but a login waits */
	for (int i = 0; i < 3; i++)
		fake_wait();
	assert_int_equal(derivations_pending(&fake_registry), 1);
	TAILQ_REMOVE(&keys->waiting, &login, in_awaited);
	while (derivations_pending(&fake_registry) > 0)
		fake_wait();
	assert_int_equal(done_count, 0);
}

static void test_end_does_not_wait_for_a_running_slice(void **state)
{
	(void)state;
	fake_block_helper();
	derive(0, 0, 0, COMMON);
	/* Returns though the thread is blocked; the thread, not this function, frees the rest. */
	assert_int_equal(derivations_end(&fake_registry), 1);
	assert_null(handles[0]);
	fake_release_helper();
	assert_true(derivations_start(&fake_registry, 1, 64));
	assert_int_equal(done_count, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(keys_are_delivered),
		TEST(invalid_parameters_fail),
		TEST(expensive_derivations_of_one_user_do_not_hold_up_another),
		TEST(expensive_derivations_of_one_address_do_not_hold_up_another),
		TEST(servers_that_demand_many_iterations_do_not_hold_up_clients),
		TEST(clients_do_not_hold_up_servers),
		TEST(abandoned_derivation_ends),
		TEST(one_source_gets_a_quarter_of_the_queue),
		TEST(verifier_is_derived_as_long_as_something_needs_it),
		TEST(end_does_not_wait_for_a_running_slice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
