/* SPDX-License-Identifier: ISC */
/*
 * A digest of pieces equals the digest of their concatenation; HMAC matches RFC 4231. The
 * allocator of the crypto library is replaced, so that it can run out of memory.
 */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "crypt/digest.h"

static bool has_memory = true;

static void *allocate(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return has_memory ? malloc(size) : NULL;
}

static void *resize(void *old, size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	return has_memory ? realloc(old, size) : NULL;
}

static void release(void *old, const char *file, int line)
{
	(void)file;
	(void)line;
	free(old);
}

/* The first lookup of digests runs out of memory; later calls still succeed. */
static void test_digests_recover_from_out_of_memory(void **state)
{
	static const struct digest_piece piece = {"abc", 3};
	uint8_t out[SHA256_SIZE];
	EVP_MD *other = EVP_MD_fetch(NULL, "SHA1", NULL); /* initializes the library */

	(void)state;
	assert_non_null(other);
	EVP_MD_free(other);
	has_memory = false;
	assert_false(digest_of(DIGEST_MD5, &piece, 1, out));
	assert_false(digest_of(DIGEST_SHA256, &piece, 1, out));
	has_memory = true;
	assert_true(digest_of(DIGEST_MD5, &piece, 1, out));
	assert_true(digest_of(DIGEST_SHA256, &piece, 1, out));
}

static void test_pieces_are_concatenated(void **state)
{
	/* RFC 1321 appendix A.5; FIPS 180-2 appendix B.1 */
	static const uint8_t md5[MD5_SIZE] = {0x90, 0x01, 0x50, 0x98, 0x3c, 0xd2, 0x4f, 0xb0,
		0xd6, 0x96, 0x3f, 0x7d, 0x28, 0xe1, 0x7f, 0x72};
	static const uint8_t sha256[SHA256_SIZE] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf,
		0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3,
		0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
	static const struct digest_piece pieces[] = {{"a", 1}, {"", 0}, {"bc", 2}};
	uint8_t out[SHA256_SIZE];

	(void)state;
	assert_true(digest_of(DIGEST_MD5, pieces, 3, out));
	assert_memory_equal(out, md5, sizeof(md5));
	assert_true(digest_of(DIGEST_SHA256, pieces, 3, out));
	assert_memory_equal(out, sha256, sizeof(sha256));
}

static void test_empty_input_has_a_digest(void **state)
{
	static const uint8_t begin[] = {0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14};
	uint8_t out[SHA256_SIZE];

	(void)state;
	assert_true(digest_of(DIGEST_SHA256, NULL, 0, out));
	assert_memory_equal(out, begin, sizeof(begin));
}

/*
 * RFC 4231 sections 4.2 and 4.3, with shorter keys: appending zeros to a key changes
 * nothing.
 */
static void test_hmac_matches_the_standard(void **state)
{
	static const uint8_t first[SHA256_SIZE] = {0xb0, 0x34, 0x4c, 0x61, 0xd8, 0xdb, 0x38,
		0x53, 0x5c, 0xa8, 0xaf, 0xce, 0xaf, 0x0b, 0xf1, 0x2b, 0x88, 0x1d, 0xc2, 0x00,
		0xc9, 0x83, 0x3d, 0xa7, 0x26, 0xe9, 0x37, 0x6c, 0x2e, 0x32, 0xcf, 0xf7};
	static const uint8_t second[SHA256_SIZE] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75,
		0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08,
		0x9d, 0x27, 0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
	static const char question[] = "what do ya want for nothing?";
	uint8_t key[SHA256_SIZE] = {0}, out[SHA256_SIZE];

	(void)state;
	memset(key, 0x0b, 20);
	assert_true(digest_hmac_sha256(key, "Hi There", 8, out));
	assert_memory_equal(out, first, sizeof(first));
	memset(key, 0, sizeof(key));
	memcpy(key, "Jefe", 4);
	assert_true(digest_hmac_sha256(key, question, strlen(question), out));
	assert_memory_equal(out, second, sizeof(second));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_digests_recover_from_out_of_memory),
		cmocka_unit_test(test_pieces_are_concatenated),
		cmocka_unit_test(test_empty_input_has_a_digest),
		cmocka_unit_test(test_hmac_matches_the_standard),
	};

	/* Must be called before the library allocates. */
	if (CRYPTO_set_mem_functions(allocate, resize, release) != 1)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
