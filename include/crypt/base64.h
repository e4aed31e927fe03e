/* SPDX-License-Identifier: ISC */
/*
 * Strict base64 (RFC 4648 section 4): padded, no white space, unused bits zero.
 */
#ifndef PGUSHER_CRYPT_BASE64_H
#define PGUSHER_CRYPT_BASE64_H

#include <stddef.h>
#include <sys/types.h>

/* Room that the encoded form of n bytes needs, with its NUL. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4 + 1)

/* Number of bytes written to out; -1 when the text is malformed or out is too small. */
ssize_t base64_decode(const char *in, size_t length, void *out, size_t size);

/* Length of the text, which is NUL-terminated; 0 when out is too small or there is nothing. */
size_t base64_encode(const void *in, size_t length, char *out, size_t size);

#endif
