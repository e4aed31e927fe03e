/* SPDX-License-Identifier: ISC */
/*
 * Preparation of passwords for SCRAM (RFC 4013).
 */
#ifndef PGUSHER_CRYPT_SASLPREP_H
#define PGUSHER_CRYPT_SASLPREP_H

/*
 * The prepared password. What RFC 4013 forbids, what is not UTF-8, and what would leave nothing
 * comes back unchanged, as PostgreSQL does it. The caller wipes and frees it; NULL: no memory.
 */
char *saslprep(const char *password);

#endif
