/* SPDX-License-Identifier: ISC */
/* Strict base64 (RFC 4648 section 4): padded, no white space, unused bits zero. */
#ifndef PGUSHER_CRYPT_BASE64_H
#define PGUSHER_CRYPT_BASE64_H

#include <stddef.h>
#include <sys/types.h>

/* Size of the encoded form of n bytes, with its NUL. */
#define BASE64_SIZE(n) (((n) + 2) / 3 * 4 + 1)

/*
 * Decode to `out` of `size` bytes. Returns the number of bytes written; -1 if the text is
 * malformed or `out` is too small.
 */
ssize_t base64_decode(const char *in, size_t length, void *out, size_t size);

/*
 * Encode to `out` of `size` bytes. Returns the length of the text, which is NUL-terminated; 0
 * if `out` is too small or the input is empty.
 */
size_t base64_encode(const void *in, size_t length, char *out, size_t size);

#endif
