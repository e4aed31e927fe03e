/* SPDX-License-Identifier: ISC */
/* First messages: kinds, layouts, options, versions, keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/startup.h"
#include "wire/writer.h"

/* ---- Helpers ---------------------------------------------------------------------------- */

static enum startup_kind peek(uint32_t length, uint32_t code, size_t available, size_t *total)
{
	struct buffer buffer = {0};
	enum startup_kind kind;

	writer_int32(&buffer, length);
	writer_int32(&buffer, code);
	if (available > STARTUP_HEADER_SIZE)
		memset(buffer_extend(&buffer, available - STARTUP_HEADER_SIZE), 0,
			available - STARTUP_HEADER_SIZE);
	kind = startup_peek(buffer.data, available, total);
	buffer_free(&buffer);
	return kind;
}

/* A StartupMessage with these bytes after the version, in memory of exactly its size. */
static uint8_t *message_of(uint32_t version, const char *body, size_t length, size_t *total)
{
	struct buffer buffer = {0};
	size_t mark = startup_begin(&buffer, version);
	uint8_t *message;

	writer_bytes(&buffer, body, length);
	writer_end(&buffer, mark);
	message = malloc(buffer.length);
	assert_non_null(message);
	memcpy(message, buffer.data, buffer.length);
	*total = buffer.length;
	buffer_free(&buffer);
	return message;
}

#define MESSAGE(body, total) message_of(PROTOCOL_3_0, body, sizeof(body) - 1, total)

/* Check the result of reading a message with this body. */
static void assert_read(const char *body, size_t length, enum startup_result expected)
{
	struct startup_login login;
	size_t total;
	uint8_t *message = message_of(PROTOCOL_3_0, body, length, &total);

	assert_int_equal(startup_read(message, total, &login), expected);
	free(message);
}

#define ASSERT_READ(body, expected) assert_read(body, sizeof(body) - 1, expected)

/* Check the settings that the walk returns, as `name=value|` each, and how it ends. */
static void assert_settings(
	const char *body, size_t length, const char *expected, enum startup_step end)
{
	struct startup_settings walk;
	struct startup_login login;
	struct buffer seen = {0};
	const char *name, *value;
	enum startup_step step;
	size_t total;
	uint8_t *message = message_of(PROTOCOL_3_0, body, length, &total);

	assert_int_equal(startup_read(message, total, &login), STARTUP_GOOD);
	startup_settings_begin(&walk, &login, message, total);
	while ((step = startup_settings_next(&walk, &name, &value)) == STARTUP_PARAMETER)
		buffer_printf(&seen, "%s%s=%s|", walk.in_options ? "-" : "", name, value);
	startup_settings_end(&walk);
	buffer_append(&seen, "", 1);
	assert_string_equal((const char *)seen.data, expected);
	assert_int_equal(step, end);
	buffer_free(&seen);
	free(message);
}

#define ASSERT_SETTINGS(body, expected, end)                                                   \
	assert_settings(body, sizeof(body) - 1, expected, end)

static void assert_options(const char *options, const char *expected, enum startup_step end)
{
	struct options_walk walk;
	struct buffer seen = {0};
	const char *name, *value;
	enum startup_step step;

	options_walk_begin(&walk, options);
	while ((step = options_walk_next(&walk, &name, &value)) == STARTUP_PARAMETER)
		buffer_printf(&seen, "%s=%s|", name, value);
	options_walk_end(&walk);
	buffer_append(&seen, "", 1);
	assert_string_equal((const char *)seen.data, expected);
	assert_int_equal(step, end);
	buffer_free(&seen);
}

/* ---- Kinds ------------------------------------------------------------------------------ */

static void test_each_code_has_its_kind(void **state)
{
	size_t total;

	(void)state;
	assert_int_equal(peek(8, SSL_REQUEST_CODE, 8, &total), STARTUP_SSL_REQUEST);
	assert_int_equal(total, 8);
	assert_int_equal(peek(8, GSSENC_REQUEST_CODE, 12, &total), STARTUP_GSSENC_REQUEST);
	assert_int_equal(total, 8);
	assert_int_equal(peek(16, CANCEL_REQUEST_CODE, 16, &total), STARTUP_CANCEL);
	assert_int_equal(total, 16);
	assert_int_equal(peek(9, PROTOCOL_2_0, 9, &total), STARTUP_PROTOCOL_2);
	assert_int_equal(peek(9, PROTOCOL_3_0, 9, &total), STARTUP_LOGIN);
	assert_int_equal(peek(9, PROTOCOL_3_2, 9, &total), STARTUP_LOGIN);
	assert_int_equal(peek(9, 0x3ffff, 9, &total), STARTUP_LOGIN);
}

static void test_other_codes_are_malformed(void **state)
{
	const uint32_t codes[] = {0, 0x10000, 0x20001, 0x2ffff, 0x40000, 80877101, 80877105,
		0x7fffffff, 0xffffffff};
	size_t total, i;

	(void)state;
	for (i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		assert_int_equal(peek(8, codes[i], 8, &total), STARTUP_MALFORMED);
}

static void test_impossible_lengths_are_malformed(void **state)
{
	const uint32_t lengths[] = {
		0, 1, 3, 4, 7, 65536, 0x01000008, 0x7fffffff, 0x80000000, 0xffffffff};
	size_t total, i;

	(void)state;
	for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		assert_int_equal(peek(lengths[i], PROTOCOL_3_0, 64, &total), STARTUP_MALFORMED);
}

static void test_a_malformed_header_is_detected_before_the_body(void **state)
{
	size_t total;

	(void)state;
	assert_int_equal(peek(60000, 0x40000, 8, &total), STARTUP_MALFORMED);
}

static void test_a_message_is_incomplete_until_its_last_byte(void **state)
{
	size_t total, available;

	(void)state;
	for (available = 0; available < 8; available++) {
		assert_int_equal(peek(20, PROTOCOL_3_0, available, &total), STARTUP_INCOMPLETE);
		assert_int_equal(total, 0);
	}
	for (available = 8; available < 20; available++) {
		assert_int_equal(peek(20, PROTOCOL_3_0, available, &total), STARTUP_INCOMPLETE);
		assert_int_equal(total, 20);
	}
	assert_int_equal(peek(20, PROTOCOL_3_0, 20, &total), STARTUP_LOGIN);
	assert_int_equal(total, 20);
}

static void test_the_largest_message_is_accepted(void **state)
{
	size_t total;

	(void)state;
	assert_int_equal(peek(65535, PROTOCOL_3_0, 8, &total), STARTUP_INCOMPLETE);
	assert_int_equal(total, 65535);
	assert_int_equal(peek(65535, PROTOCOL_3_0, 65535, &total), STARTUP_LOGIN);
}

/* ---- Parameters ------------------------------------------------------------------------- */

static void test_the_parameters_of_a_login_are_read(void **state)
{
	const char body[] = "user\0alice\0database\0shop\0options\0-c a=b\0"
			    "replication\0database\0";
	struct startup_login login;
	size_t total;
	uint8_t *message = message_of(PROTOCOL_3_2, body, sizeof(body), &total);

	(void)state;
	assert_int_equal(startup_read(message, total, &login), STARTUP_GOOD);
	assert_int_equal(login.version, PROTOCOL_3_2);
	assert_string_equal(login.user, "alice");
	assert_string_equal(login.database, "shop");
	assert_string_equal(login.options, "-c a=b");
	assert_int_equal(login.replication, REPLICATION_LOGICAL);
	assert_int_equal(login.unknown_options, 0);
	free(message);
}

static void test_the_database_defaults_to_the_user(void **state)
{
	struct startup_login login;
	size_t total;
	uint8_t *message = MESSAGE("user\0alice\0\0", &total);

	(void)state;
	assert_int_equal(startup_read(message, total, &login), STARTUP_GOOD);
	assert_string_equal(login.database, "alice");
	assert_null(login.options);
	free(message);
	message = MESSAGE("database\0\0user\0bob\0\0", &total);
	assert_int_equal(startup_read(message, total, &login), STARTUP_GOOD);
	assert_string_equal(login.database, "bob");
	free(message);
}

static void test_the_last_of_repeated_parameters_counts(void **state)
{
	struct startup_login login;
	size_t total;
	uint8_t *message =
		MESSAGE("user\0a\0database\0x\0user\0b\0database\0y\0replication\0on\0"
			"replication\0off\0\0",
			&total);

	(void)state;
	assert_int_equal(startup_read(message, total, &login), STARTUP_GOOD);
	assert_string_equal(login.user, "b");
	assert_string_equal(login.database, "y");
	assert_int_equal(login.replication, REPLICATION_NONE);
	free(message);
}

static void test_names_are_case_sensitive(void **state)
{
	(void)state;
	ASSERT_READ("User\0alice\0\0", STARTUP_NO_USER);
	ASSERT_SETTINGS(
		"user\0a\0Options\0-x\0DATABASE\0d\0\0", "Options=-x|DATABASE=d|", STARTUP_END);
}

static void test_a_user_is_required(void **state)
{
	(void)state;
	ASSERT_READ("\0", STARTUP_NO_USER);
	ASSERT_READ("database\0shop\0\0", STARTUP_NO_USER);
	ASSERT_READ("user\0\0\0", STARTUP_NO_USER);
}

static void test_a_bad_layout_has_its_own_result(void **state)
{
	const char whole[] = "user\0alice\0database\0shop\0";
	size_t length;

	(void)state;
	for (length = 0; length < sizeof(whole) - 1; length++)
		assert_read(whole, length, STARTUP_BAD_LAYOUT);
	assert_read(whole, sizeof(whole), STARTUP_GOOD);
	ASSERT_READ("user\0alice\0\0x", STARTUP_BAD_LAYOUT);
	ASSERT_READ("user\0alice\0\0\0", STARTUP_BAD_LAYOUT);
	ASSERT_READ("user\0alice\0database\0\0", STARTUP_BAD_LAYOUT);
	ASSERT_READ("user\0alice\0database\0", STARTUP_BAD_LAYOUT);
}

static void test_hundreds_of_parameters_are_walked(void **state)
{
	struct buffer body = {0};
	int i;

	(void)state;
	writer_string(&body, "user");
	writer_string(&body, "alice");
	for (i = 0; i < 500; i++) {
		writer_string(&body, "name");
		writer_string(&body, "a value of some length that is not short");
	}
	writer_byte(&body, 0);
	assert_read((const char *)body.data, body.length, STARTUP_GOOD);
	buffer_free(&body);
}

static void test_values_of_replication(void **state)
{
	const char *const physical[] = {
		"t", "true", "TRUE", "tr", "y", "yes", "on", "ON", "On", "1"};
	const char *const none[] = {"", "f", "false", "n", "no", "o", "of", "off", "0", "2",
		"11", "truex", "yess", "one", "Database", "databases", "nonsense"};
	size_t i;

	(void)state;
	assert_int_equal(startup_replication_word("database"), REPLICATION_LOGICAL);
	for (i = 0; i < sizeof(physical) / sizeof(*physical); i++)
		assert_int_equal(startup_replication_word(physical[i]), REPLICATION_PHYSICAL);
	for (i = 0; i < sizeof(none) / sizeof(*none); i++)
		assert_int_equal(startup_replication_word(none[i]), REPLICATION_NONE);
}

/* ---- Options ---------------------------------------------------------------------------- */

static void test_the_three_spellings_of_a_setting(void **state)
{
	(void)state;
	assert_options("-c a=b", "a=b|", STARTUP_END);
	assert_options("-ca=b", "a=b|", STARTUP_END);
	assert_options("--a=b", "a=b|", STARTUP_END);
	assert_options("-c a=1 -cb=2\t--c=3 -c \n d=4", "a=1|b=2|c=3|d=4|", STARTUP_END);
	assert_options("--search-path=x", "search-path=x|", STARTUP_END);
}

static void test_white_space_around_options_is_ignored(void **state)
{
	(void)state;
	assert_options("", "", STARTUP_END);
	assert_options("  \t", "", STARTUP_END);
	assert_options("  -c a=b", "a=b|", STARTUP_END);
	assert_options("-c a=b  ", "a=b|", STARTUP_END);
}

static void test_a_setting_is_split_at_its_first_equals_sign(void **state)
{
	(void)state;
	assert_options("-c a=b=c", "a=b=c|", STARTUP_END);
	assert_options("-c a=", "a=|", STARTUP_END);
	assert_options("-c a==", "a==|", STARTUP_END);
}

static void test_backslashes_escape_the_next_character(void **state)
{
	(void)state;
	assert_options("-c a=b\\ c", "a=b c|", STARTUP_END);
	assert_options("-c a=\\\\", "a=\\|", STARTUP_END);
	assert_options("-c \\a\\==b", "a==b|", STARTUP_END);
	assert_options("-c a\\=b", "a=b|", STARTUP_END);
	assert_options("-c a=b\\", "a=b|", STARTUP_END);
	assert_options("-c a=\\-c\\ b=d", "a=-c b=d|", STARTUP_END);
}

static void test_other_syntax_is_broken(void **state)
{
	const char *const broken[] = {"a=b", "-", "--", "-c", "-c ", "-x", "-d 5", "-C a=b",
		"-c a", "--a", "-- a=b", "-c a =b", "-c =b", "--=", "\\-c a=b", "---"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(broken) / sizeof(*broken); i++)
		assert_options(broken[i], "", STARTUP_BROKEN);
	assert_options("-c a=b junk", "a=b|", STARTUP_BROKEN);
}

static void test_long_options_are_read(void **state)
{
	char *options = malloc(60001);
	struct options_walk walk;
	const char *name, *value;

	(void)state;
	assert_non_null(options);
	memset(options, 'x', 60000);
	memcpy(options, "-c a=", 5);
	options[60000] = '\0';
	options_walk_begin(&walk, options);
	assert_int_equal(options_walk_next(&walk, &name, &value), STARTUP_PARAMETER);
	assert_int_equal(strlen(value), 60000 - 5);
	assert_int_equal(options_walk_next(&walk, &name, &value), STARTUP_END);
	options_walk_end(&walk);
	free(options);
}

static void test_settings_are_in_order_with_those_of_options(void **state)
{
	(void)state;
	ASSERT_SETTINGS("TimeZone\0UTC\0user\0a\0options\0-c x=1 --y=2\0_pq_.z\0\0"
			"application_name\0me\0database\0d\0replication\0no\0\0",
		"TimeZone=UTC|-x=1|-y=2|application_name=me|", STARTUP_END);
	ASSERT_SETTINGS("user\0a\0\0", "", STARTUP_END);
	ASSERT_SETTINGS("user\0a\0options\0\0x\0y\0\0", "x=y|", STARTUP_END);
}

static void test_only_the_last_options_count(void **state)
{
	(void)state;
	ASSERT_SETTINGS("user\0a\0options\0-c x=1\0b\0c\0options\0-c x=2\0\0", "b=c|-x=2|",
		STARTUP_END);
}

static void test_options_of_a_replication_client_are_skipped(void **state)
{
	(void)state;
	ASSERT_SETTINGS("options\0-d 5\0replication\0yes\0user\0a\0TimeZone\0UTC\0\0",
		"TimeZone=UTC|", STARTUP_END);
}

static void test_broken_options_end_the_walk(void **state)
{
	(void)state;
	ASSERT_SETTINGS(
		"user\0a\0x\0y\0options\0-c a=b -d\0z\0z\0\0", "x=y|-a=b|", STARTUP_BROKEN);
}

/* ---- Version ---------------------------------------------------------------------------- */

static void test_the_newest_version_not_above_the_clients_is_chosen(void **state)
{
	(void)state;
	assert_int_equal(startup_version_spoken(PROTOCOL_3_0), PROTOCOL_3_0);
	assert_int_equal(startup_version_spoken(PROTOCOL_VERSION(3, 1)), PROTOCOL_3_0);
	assert_int_equal(startup_version_spoken(PROTOCOL_3_2), PROTOCOL_3_2);
	assert_int_equal(startup_version_spoken(PROTOCOL_VERSION(3, 9999)), PROTOCOL_3_2);
	assert_int_equal(startup_version_spoken(0x3ffff), PROTOCOL_3_2);
}

/* Check the answer to a client of this version and these parameters. */
static void assert_negotiation(
	uint32_t version, const char *body, size_t length, const char *answer, size_t size)
{
	struct startup_login login;
	struct buffer buffer = {0};
	size_t total;
	uint8_t *message = message_of(version, body, length, &total);

	assert_int_equal(startup_read(message, total, &login), STARTUP_GOOD);
	assert_int_equal(startup_write_negotiation(&buffer, &login, message, total), size > 0);
	assert_int_equal(buffer.length, size);
	if (size > 0)
		assert_memory_equal(buffer.data, answer, size);
	buffer_free(&buffer);
	free(message);
}

#define ASSERT_NEGOTIATION(version, body, answer)                                              \
	assert_negotiation(version, body, sizeof(body) - 1, answer, sizeof(answer) - 1)

static void test_a_supported_version_is_not_negotiated(void **state)
{
	(void)state;
	ASSERT_NEGOTIATION(PROTOCOL_3_0, "user\0a\0\0", "");
	ASSERT_NEGOTIATION(PROTOCOL_3_2, "user\0a\0\0", "");
}

static void test_another_version_is_negotiated(void **state)
{
	(void)state;
	ASSERT_NEGOTIATION(PROTOCOL_VERSION(3, 1), "user\0a\0\0", "v\0\0\0\14\0\3\0\0\0\0\0\0");
	ASSERT_NEGOTIATION(
		PROTOCOL_VERSION(3, 9999), "user\0a\0\0", "v\0\0\0\14\0\3\0\2\0\0\0\0");
}

static void test_unknown_protocol_options_are_listed_in_order(void **state)
{
	(void)state;
	ASSERT_NEGOTIATION(PROTOCOL_3_0, "_pq_.b\0x\0user\0a\0_pq_.a\0\0_pq_x\0y\0\0",
		"v\0\0\0\32\0\3\0\0\0\0\0\2_pq_.b\0_pq_.a\0");
	ASSERT_NEGOTIATION(
		PROTOCOL_3_2, "user\0a\0_pq_.\0\0\0", "v\0\0\0\22\0\3\0\2\0\0\0\1_pq_.\0");
}

/* ---- Cancel and servers ----------------------------------------------------------------- */

static void test_keys_of_cancel_requests_have_size_limits(void **state)
{
	const struct {
		size_t size;
		bool good;
	} keys[] = {{0, false}, {4, false}, {7, false}, {8, true}, {9, true}, {36, true},
		{260, true}, {261, false}, {1000, false}};
	const uint8_t bytes[1000] = {1, 2, 3};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		struct buffer buffer = {0};
		const uint8_t *key;
		size_t total, length = 0;

		startup_write_cancel(&buffer, bytes, keys[i].size);
		assert_int_equal(
			startup_peek(buffer.data, buffer.length, &total), STARTUP_CANCEL);
		key = startup_cancel_key(buffer.data, total, &length);
		assert_int_equal(key != NULL, keys[i].good);
		assert_int_equal(length, keys[i].good ? keys[i].size : 0);
		if (key != NULL)
			assert_memory_equal(key, bytes, length);
		buffer_free(&buffer);
	}
}

static void test_a_startup_message_we_build_can_be_parsed(void **state)
{
	struct buffer buffer = {0};
	struct startup_login login;
	size_t total, mark = startup_begin(&buffer, PROTOCOL_3_0);

	(void)state;
	writer_string(&buffer, "database");
	writer_string(&buffer, "shop");
	writer_string(&buffer, "user");
	writer_string(&buffer, "alice");
	startup_end(&buffer, mark);
	assert_int_equal(buffer.length, 34);
	assert_memory_equal(
		buffer.data, "\0\0\0\42\0\3\0\0database\0shop\0user\0alice\0\0", 34);
	assert_int_equal(startup_peek(buffer.data, buffer.length, &total), STARTUP_LOGIN);
	assert_int_equal(startup_read(buffer.data, total, &login), STARTUP_GOOD);
	assert_string_equal(login.database, "shop");
	buffer_free(&buffer);
}

static void test_a_request_has_only_its_code(void **state)
{
	struct buffer buffer = {0};

	(void)state;
	startup_write_request(&buffer, SSL_REQUEST_CODE);
	assert_int_equal(buffer.length, 8);
	assert_memory_equal(buffer.data, "\0\0\0\10\4\322\26\57", 8);
	buffer_free(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_code_has_its_kind),
		cmocka_unit_test(test_other_codes_are_malformed),
		cmocka_unit_test(test_impossible_lengths_are_malformed),
		cmocka_unit_test(test_a_malformed_header_is_detected_before_the_body),
		cmocka_unit_test(test_a_message_is_incomplete_until_its_last_byte),
		cmocka_unit_test(test_the_largest_message_is_accepted),
		cmocka_unit_test(test_the_parameters_of_a_login_are_read),
		cmocka_unit_test(test_the_database_defaults_to_the_user),
		cmocka_unit_test(test_the_last_of_repeated_parameters_counts),
		cmocka_unit_test(test_names_are_case_sensitive),
		cmocka_unit_test(test_a_user_is_required),
		cmocka_unit_test(test_a_bad_layout_has_its_own_result),
		cmocka_unit_test(test_hundreds_of_parameters_are_walked),
		cmocka_unit_test(test_values_of_replication),
		cmocka_unit_test(test_the_three_spellings_of_a_setting),
		cmocka_unit_test(test_white_space_around_options_is_ignored),
		cmocka_unit_test(test_a_setting_is_split_at_its_first_equals_sign),
		cmocka_unit_test(test_backslashes_escape_the_next_character),
		cmocka_unit_test(test_other_syntax_is_broken),
		cmocka_unit_test(test_long_options_are_read),
		cmocka_unit_test(test_settings_are_in_order_with_those_of_options),
		cmocka_unit_test(test_only_the_last_options_count),
		cmocka_unit_test(test_options_of_a_replication_client_are_skipped),
		cmocka_unit_test(test_broken_options_end_the_walk),
		cmocka_unit_test(test_the_newest_version_not_above_the_clients_is_chosen),
		cmocka_unit_test(test_a_supported_version_is_not_negotiated),
		cmocka_unit_test(test_another_version_is_negotiated),
		cmocka_unit_test(test_unknown_protocol_options_are_listed_in_order),
		cmocka_unit_test(test_keys_of_cancel_requests_have_size_limits),
		cmocka_unit_test(test_a_startup_message_we_build_can_be_parsed),
		cmocka_unit_test(test_a_request_has_only_its_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
