/* SPDX-License-Identifier: ISC */
/*
 * Decoding is done here: OpenSSL's decoder skips white space and counts padding as bytes, and
 * the checks needed around it took ten times as long as decoding itself.
 */
#include "crypt/base64.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { GROUP = 4, GROUP_BYTES = 3 };

/* The six bits of a digit; -1 for other characters. */
static inline int value_of(char digit)
{
	if (digit >= 'a' && digit <= 'z')
		return digit - 'a' + 26;
	if (digit >= 'A' && digit <= 'Z')
		return digit - 'A';
	if (digit >= '0' && digit <= '9')
		return digit - '0' + 52;
	if (digit == '+')
		return 62;
	return digit == '/' ? 63 : -1;
}

/* Decode four digits to 24 bits; false if one is not a digit. */
static bool read_group(const char *in, uint32_t *out)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < GROUP; i++) {
		const int value = value_of(in[i]);

		if (value < 0)
			return false;
		bits = bits << 6 | (uint32_t)value;
	}
	*out = bits;
	return true;
}

static void write_bytes(uint8_t *out, uint32_t bits, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = (uint8_t)(bits >> (16 - 8 * i));
}

static size_t padding_of(const char *in, size_t length)
{
	if (in[length - 1] != '=')
		return 0;
	return in[length - 2] == '=' ? 2 : 1;
}

/*
 * Decode the last group, in which padding counts as zero bits. Returns false if an encoder
 * would not write it.
 */
static bool read_last(const char *in, size_t padding, uint32_t *out)
{
	static const uint32_t unused_bits[] = {0, 0xff, 0xffff};
	char padded[GROUP];

	memcpy(padded, in, GROUP);
	memset(padded + GROUP - padding, 'A', padding);
	return read_group(padded, out) && (*out & unused_bits[padding]) == 0;
}

ssize_t base64_decode(const char *in, size_t length, void *out, size_t size)
{
	uint8_t *to = out;
	size_t padding, bytes;
	uint32_t bits;

	if (length == 0)
		return 0;
	if (length % GROUP != 0)
		return -1;
	padding = padding_of(in, length);
	bytes = length / GROUP * GROUP_BYTES - padding;
	if (bytes > size)
		return -1;
	for (; length > GROUP; length -= GROUP, in += GROUP, to += GROUP_BYTES) {
		if (!read_group(in, &bits))
			return -1;
		write_bytes(to, bits, GROUP_BYTES);
	}
	if (!read_last(in, padding, &bits))
		return -1;
	write_bytes(to, bits, GROUP_BYTES - padding);
	return (ssize_t)bytes;
}

size_t base64_encode(const void *in, size_t length, char *out, size_t size)
{
	if (length == 0 || length > INT_MAX / 2 || BASE64_SIZE(length) > size) {
		if (size > 0)
			out[0] = '\0';
		return 0;
	}
	return (size_t)EVP_EncodeBlock((unsigned char *)out, in, (int)length);
}
