/* SPDX-License-Identifier: ISC */
/* OpenSSL's base64 made strict: by itself it skips white space and counts padding as bytes. */
#include "crypt/base64.h"

#include <limits.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <string.h>

enum { GROUP = 4, GROUP_BYTES = 3 };

/* The six bits of a digit; -1: none. */
static int value_of(char digit)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = memchr(digits, digit, sizeof(digits) - 1);

	return found != NULL ? (int)(found - digits) : -1;
}

/* Number of padding characters, 0 to 2; -1: the text is not what base64_encode() could write. */
static int padding_of(const char *in, size_t length)
{
	static const int unused_bits[] = {0, 3, 15};
	int padding = 0;

	if (length % GROUP != 0)
		return -1;
	while (padding < 2 && length > 0 && in[length - 1] == '=') {
		padding++;
		length--;
	}
	for (size_t i = 0; i < length; i++) {
		if (value_of(in[i]) < 0)
			return -1;
	}
	if (padding > 0 && (value_of(in[length - 1]) & unused_bits[padding]) != 0)
		return -1;
	return padding;
}

ssize_t base64_decode(const char *in, size_t length, void *out, size_t size)
{
	const unsigned char *text = (const unsigned char *)in;
	uint8_t last[GROUP_BYTES];
	size_t bytes, whole;
	int padding;

	if (length == 0)
		return 0;
	padding = length <= INT_MAX ? padding_of(in, length) : -1;
	if (padding < 0)
		return -1;
	bytes = length / GROUP * GROUP_BYTES - (size_t)padding;
	if (bytes > size)
		return -1;

	/* The last group apart: three bytes are written for it, whatever its padding. */
	whole = length - GROUP;
	if (whole > 0 && EVP_DecodeBlock(out, text, (int)whole) < 0)
		return -1;
	if (EVP_DecodeBlock(last, text + whole, GROUP) != GROUP_BYTES)
		return -1;
	memcpy((uint8_t *)out + whole / GROUP * GROUP_BYTES, last,
		(size_t)(GROUP_BYTES - padding));
	explicit_bzero(last, sizeof(last));
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
