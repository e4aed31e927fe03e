/* SPDX-License-Identifier: ISC */
/*
 * Clients with the same application_name are counted together; the number of groups is limited.
 */
#include "model/statistics/client_group.h"
#include "support/fakes/fake_pool.h"

static struct pool *pool;

static int start(void **state)
{
	(void)state;
	fake_start("[databases]\ndb = host=/tmp\n[pgbouncer]\nmax_client_conn = 1000\n");
	pool = fake_pool("db", "alice");
	return 0;
}

static void name(struct client_link *client, const char *application_name)
{
	struct parameter_table *table = fake_registry.parameters;
	struct parameters *set = parameters_with(table, client->link.parameters,
		(unsigned)parameter_index(table, "application_name"), application_name);

	assert_non_null(set);
	parameters_unref(client->link.parameters);
	client->link.parameters = set;
	client_group_join(client);
	fake_check();
}

static unsigned groups(void)
{
	unsigned count = 0;

	for (const struct client_group *group = pool->groups; group; group = group->next)
		count++;
	return count;
}

static void test_clients_without_a_name_share_a_group(void **state)
{
	struct client_link *one = endpoint_client(fake_client(pool));
	struct client_link *two = endpoint_client(fake_client(pool));

	(void)state;
	assert_non_null(one->group);
	assert_ptr_equal(one->group, two->group);
	assert_string_equal(one->group->application_name, "");
	assert_int_equal(one->group->members, 2);
	assert_int_equal(one->group->clients[CLIENT_IDLE], 2);
}

static void test_clients_of_one_name_share_a_group(void **state)
{
	struct client_link *clients[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		clients[i] = endpoint_client(fake_client(pool));
		name(clients[i], i == 2 ? "shell" : "web");
	}
	assert_ptr_equal(clients[0]->group, clients[1]->group);
	assert_ptr_not_equal(clients[0]->group, clients[2]->group);
	assert_string_equal(clients[2]->group->application_name, "shell");
	assert_int_equal(groups(), 2);
}

static void test_another_name_is_another_group(void **state)
{
	struct client_link *client = endpoint_client(fake_client(pool));

	(void)state;
	name(client, "web");
	name(client, "shell");
	assert_string_equal(client->group->application_name, "shell");
	assert_int_equal(client->group->clients[CLIENT_IDLE], 1);
	assert_int_equal(groups(), 1);
	name(client, "shell");
	assert_int_equal(client->group->members, 1);
	client_enter(client, CLIENT_WAITING);
	stream_pause(&client->link.stream);
	name(client, "web");
	assert_int_equal(client->group->clients[CLIENT_WAITING], 1);
}

static void test_group_is_freed_with_its_last_member(void **state)
{
	struct endpoint *one = fake_client(pool), *two = fake_client(pool);

	(void)state;
	name(endpoint_client(one), "web");
	name(endpoint_client(two), "web");
	send_letters(one, "X");
	assert_int_equal(groups(), 1);
	send_letters(two, "X");
	assert_int_equal(groups(), 0);
}

static void test_long_names_are_cut(void **state)
{
	struct client_link *one = endpoint_client(fake_client(pool));
	struct client_link *two = endpoint_client(fake_client(pool));
	char long_name[CLIENT_GROUP_NAME_SIZE + 20];

	(void)state;
	memset(long_name, 'x', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	name(one, long_name);
	long_name[sizeof(long_name) - 2] = 'y';
	name(two, long_name);
	assert_ptr_equal(one->group, two->group);
	assert_int_equal(strlen(one->group->application_name), CLIENT_GROUP_NAME_SIZE - 1);
}

static void test_too_many_names_share_the_group_other(void **state)
{
	struct client_link *clients[CLIENT_GROUP_NAMES + 50];
	char text[32];

	(void)state;
	for (size_t i = 0; i < COUNT(clients); i++) {
		clients[i] = endpoint_client(fake_client(pool));
		snprintf(text, sizeof(text), "name %zu", i);
		name(clients[i], text);
	}
	/* Each was in the group without a name before, which also counts as one. */
	assert_in_range(groups(), CLIENT_GROUP_NAMES, CLIENT_GROUP_NAMES + 1);
	assert_string_equal(clients[COUNT(clients) - 1]->group->application_name, "other");
	assert_in_range(clients[COUNT(clients) - 1]->group->members, 49, 51);
	/* Names that have a group keep it. */
	name(clients[COUNT(clients) - 1], "name 7");
	assert_ptr_equal(clients[COUNT(clients) - 1]->group, clients[7]->group);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, fake_end)
	const struct CMUnitTest tests[] = {
		TEST(clients_without_a_name_share_a_group),
		TEST(clients_of_one_name_share_a_group),
		TEST(another_name_is_another_group),
		TEST(group_is_freed_with_its_last_member),
		TEST(long_names_are_cut),
		TEST(too_many_names_share_the_group_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
