/* SPDX-License-Identifier: ISC */
/*
 * PostgreSQL's MD5 passwords (Protocol: "AuthenticationMD5Password").
 *
 * A secret here is "md5", 32 lower-case hex digits and a NUL. The functions return false only
 * if the crypto library refuses MD5, as under a FIPS policy.
 */
#ifndef PGUSHER_CRYPT_MD5_H
#define PGUSHER_CRYPT_MD5_H

#include <stdbool.h>
#include <stdint.h>

enum {
	MD5_SECRET_LENGTH = 35,
	MD5_SECRET_SIZE = 36, /* with its NUL */
	MD5_SALT_SIZE = 4,
};

/* The secret stored for a user: the digest of password and name. */
bool md5_secret(const char *password, const char *user, char out[MD5_SECRET_SIZE]);

/* The client's response to a salt, made from the stored secret. */
bool md5_response(const char secret[MD5_SECRET_SIZE], const uint8_t salt[MD5_SALT_SIZE],
	char out[MD5_SECRET_SIZE]);

/*
 * Whether the text is a stored secret. Anything else (other length, upper case) is a
 * clear-text password.
 */
bool md5_is_secret(const char *text);

#endif
