/* SPDX-License-Identifier: ISC */
/* Statements by which a client replaces a parameter that servers refuse. */
#include "session/parameters/way_out.h"
#include "support/fakes/fake_pool.h"
#include "wire/message.h"
#include "wire/parameter_values.h"
#include "wire/writer.h"

static struct client_link *client;
static struct buffer messages;
static struct parameters *result;

static struct parameters *make_set(const char *zone, const char *const *followed)
{
	struct parameter_table *table = fake_registry.parameters;
	struct parameter_values values = {.count = 0};

	values.tracked[parameter_index(table, "TimeZone")] = zone;
	for (; *followed; followed += 2)
		parameter_values_follow(&values, followed[0], followed[1]);
	return parameter_values_intern(table, &values);
}

static int start(void **state)
{
	static const char *const asked[] = {"search_path", "home", NULL};
	static const char *const wanted[] = {
		"role", "gone", "search_path", "away", "work_mem", "1MB", NULL};

	(void)state;
	client = endpoint_client(fake_client(fake_start_pool("")));
	client->asked = make_set("UTC", asked);
	parameters_unref(client->link.parameters);
	client->link.parameters = make_set("Nowhere", wanted);
	return 0;
}

static int end(void **state)
{
	parameters_unref(result);
	result = NULL;
	return fake_end(state);
}

static void write_parse(const char *text)
{
	const size_t mark = writer_begin(&messages, PQ_PARSE);

	writer_string(&messages, "");
	writer_string(&messages, text);
	writer_int16(&messages, 0);
	writer_end(&messages, mark);
}

/* The client holds the messages. */
static void hold(void)
{
	parameters_unref(result);
	link_drop_held(&client->link);
	link_hold(&client->link, messages.data, messages.length);
	buffer_free(&messages);
	result = way_out_of(client);
	link_drop_held(&client->link);
}

static void hold_query(const char *text)
{
	writer_query(&messages, text);
	hold();
}

#define assert_follows(name, value)                                                            \
	assert_string_equal(parameters_get_followed(result, name), value)
#define assert_lacks(name) assert_null(parameters_get_followed(result, name))

static const char *zone(void)
{
	return parameters_get(
		result, (unsigned)parameter_index(fake_registry.parameters, "TimeZone"));
}

static void test_set(void **state)
{
	(void)state;
	hold_query("SET ROLE other");
	assert_follows("role", "other");
	assert_follows("work_mem", "1MB");
	assert_string_equal(zone(), "Nowhere");
	hold_query("set timezone to 'GMT'");
	assert_string_equal(zone(), "GMT");
	assert_follows("role", "gone");
	hold_query("SET SESSION AUTHORIZATION other");
	assert_lacks("role");
}

static void test_reset(void **state)
{
	(void)state;
	hold_query("RESET ROLE");
	assert_lacks("role");
	assert_follows("search_path", "away");
	hold_query("RESET search_path");
	assert_follows("search_path", "home");
	hold_query("SET TimeZone TO DEFAULT");
	assert_string_equal(zone(), "UTC");
}

static void test_reset_all_leaves_the_role(void **state)
{
	(void)state;
	hold_query("RESET ALL");
	assert_follows("role", "gone");
	assert_follows("search_path", "home");
	assert_lacks("work_mem");
	assert_string_equal(zone(), "UTC");
}

static void test_discard_all(void **state)
{
	(void)state;
	hold_query("DISCARD ALL");
	assert_lacks("role");
	assert_follows("search_path", "home");
	assert_string_equal(zone(), "UTC");
}

static void test_extended_protocol(void **state)
{
	(void)state;
	write_parse("RESET ROLE");
	letters_write(&messages, FROM_CLIENT, "BDES");
	hold();
	assert_lacks("role");
	/* It is not executed yet. */
	write_parse("RESET ROLE");
	letters_write(&messages, FROM_CLIENT, "DS");
	hold();
	assert_null(result);
}

static void test_others(void **state)
{
	static const char *const texts[] = {"SELECT 1", "SET LOCAL ROLE other",
		"RESET ROLE; SELECT 1", "BEGIN", "", "DISCARD TEMP"};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		hold_query(texts[i]);
		assert_null(result);
	}
	letters_write(&messages, FROM_CLIENT, "S");
	hold();
	assert_null(result);
	letters_write(&messages, FROM_CLIENT, "BES");
	hold();
	assert_null(result);
	writer_query(&messages, "RESET ROLE");
	messages.length--;
	hold();
	assert_null(result);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, start, end)
	const struct CMUnitTest tests[] = {
		TEST(set),
		TEST(reset),
		TEST(reset_all_leaves_the_role),
		TEST(discard_all),
		TEST(extended_protocol),
		TEST(others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
