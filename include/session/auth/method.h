/* SPDX-License-Identifier: ISC */
/*
 * The ways in which a client may prove who it is: one file each, exporting one row.
 *
 * A method may need no message, one or several, and may wait for a helper thread: then it
 * answers AUTH_PENDING and calls client_login_proceed() when it knows.
 */
#ifndef PGUSHER_SESSION_AUTH_METHOD_H
#define PGUSHER_SESSION_AUTH_METHOD_H

#include "session/link/login.h"

extern const struct auth_method auth_any, auth_trust, auth_plain, auth_md5, auth_scram,
	auth_cert, auth_hba, auth_peer, auth_ldap, auth_pam;

/* The method that an auth_type names. */
const struct auth_method *auth_method_of(enum auth_type type);

/*
 * Load what the methods need that this configuration names. False: it cannot be put in force,
 * and `why` says what is missing.
 */
bool auth_load(const struct snapshot *config, char *why, size_t size);

/*
 * The method that the HBA file has for this client as this user, who may not be the one in the
 * end. NULL: no rule fits, or none of ours.
 */
const struct auth_method *auth_hba_method(const struct client_link *client, const char *user);

/* The method of a rule by its number in the file; NULL behind the last. */
const struct auth_method *auth_hba_method_at(const struct hba *hba, size_t index);

/*
 * Return the name of the external method (`LDAP`, `PAM`) by which a client of this user name
 * will be authenticated, or NULL when pgusher checks the client itself.
 */
const char *auth_external_name(const struct client_link *client, const char *user);

#endif
