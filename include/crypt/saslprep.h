/* SPDX-License-Identifier: ISC */
/* Preparation of passwords for SCRAM (RFC 4013). */
#ifndef PGUSHER_CRYPT_SASLPREP_H
#define PGUSHER_CRYPT_SASLPREP_H

/*
 * Returns the prepared password, which the caller wipes and frees; NULL when out of memory. As
 * in PostgreSQL, the password is returned unchanged if RFC 4013 forbids it, if it is not
 * UTF-8, or if the result would be empty.
 */
char *saslprep(const char *password);

#endif
