/* SPDX-License-Identifier: ISC */
/* Credentials: references, comparison, and the keys derived from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/credential.h"

#define SCRAM_TEXT                                                                             \
	"SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$"                                         \
	"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"                                        \
	"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="

static struct credential *credential_of(const char *secret)
{
	struct credential *credential = credential_new(secret, strlen(secret));

	assert_non_null(credential);
	return credential;
}

static void test_secret_is_copied_up_to_its_length(void **state)
{
	struct credential *credential = credential_new("secretive", 6);

	(void)state;
	assert_string_equal(credential->secret, "secret");
	assert_int_equal(credential->references, 1);
	credential_unref(credential);
}

static void test_missing_secret_is_empty(void **state)
{
	struct credential *credential = credential_new(NULL, 0);

	(void)state;
	assert_int_equal(secret_kind(credential->secret), SECRET_EMPTY);
	credential_unref(credential);
	credential_unref(NULL);
}

static void test_only_equal_secrets_compare_equal(void **state)
{
	struct credential *one = credential_of("secret"), *same = credential_of("secret");
	struct credential *other = credential_of("secreT"), *longer = credential_of("secrets");

	(void)state;
	assert_true(credential_equal(one, same));
	assert_false(credential_equal(one, other));
	assert_false(credential_equal(one, longer));
	credential_unref(one);
	credential_unref(same);
	credential_unref(other);
	credential_unref(longer);
}

static void test_keys_are_parsed_from_a_scram_secret_once(void **state)
{
	struct credential *credential = credential_of(SCRAM_TEXT);
	struct user_keys *keys = credential_keys(credential);

	(void)state;
	assert_non_null(keys);
	assert_true(keys->verifier_known);
	assert_ptr_equal(credential_keys(credential), keys);
	credential_unref(credential);
}

static void test_keys_outlive_their_secret_while_referenced(void **state)
{
	struct credential *credential = credential_of("secret");
	struct user_keys *keys = user_keys_ref(credential_keys(credential));

	(void)state;
	assert_int_equal(keys->references, 2);
	credential_unref(credential_ref(credential));
	assert_int_equal(keys->references, 2);
	credential_unref(credential);
	assert_int_equal(keys->references, 1);
	user_keys_unref(keys);
	user_keys_unref(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_secret_is_copied_up_to_its_length),
		cmocka_unit_test(test_missing_secret_is_empty),
		cmocka_unit_test(test_only_equal_secrets_compare_equal),
		cmocka_unit_test(test_keys_are_parsed_from_a_scram_secret_once),
		cmocka_unit_test(test_keys_outlive_their_secret_while_referenced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
