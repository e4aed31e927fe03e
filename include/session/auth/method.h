/* SPDX-License-Identifier: ISC */
/*
 * The authentication methods for clients: one file each, exporting one row.
 *
 * A method may need no message from the client, one or several. If it waits for a message or
 * for a helper thread it returns AUTH_PENDING; a result of a helper goes to
 * client_login_proceed().
 */
#ifndef PGUSHER_SESSION_AUTH_METHOD_H
#define PGUSHER_SESSION_AUTH_METHOD_H

#include "session/link/login.h"

extern const struct auth_method auth_any, auth_trust, auth_plain, auth_md5, auth_scram,
	auth_cert, auth_hba, auth_peer, auth_ldap, auth_pam;

/* Return the method of this auth_type. */
const struct auth_method *auth_method_of(enum auth_type type);

/*
 * Load the libraries of the methods that this configuration uses. Returns false when the
 * configuration cannot be put in force; `why`, of `size` bytes, names what is missing then.
 */
bool auth_load(const struct snapshot *config, char *why, size_t size);

/*
 * Return the method of the HBA file for this client with this user name, which may differ from
 * the user of the finished login. Returns NULL when no rule matches.
 */
const struct auth_method *auth_hba_method(const struct client_link *client, const char *user);

/* Return the method of the HBA rule with this index, or NULL behind the last rule. */
const struct auth_method *auth_hba_method_at(const struct hba *hba, size_t index);

/*
 * Return the name of the external method (`LDAP`, `PAM`) by which a client of this user name
 * will be authenticated, or NULL when pgusher checks the client itself.
 */
const char *auth_external_name(const struct client_link *client, const char *user);

#endif
