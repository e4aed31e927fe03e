/* SPDX-License-Identifier: ISC */
/*
 * The options of LDAP authentication: the value of auth_ldap_options, or what stands behind the
 * word `ldap` in an HBA file. They are read anew at each login.
 *
 * Items are `key=value`, set apart by blanks, one comma, or both; key and value may stand in
 * double quotes, in which "" is one quote. Reading ends, silently as in PgBouncer, at the first
 * item that has no `=`, no key or no value.
 */
#ifndef PGUSHER_CONFIG_LDAP_OPTIONS_H
#define PGUSHER_CONFIG_LDAP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of options that are looked at. */
enum { LDAP_OPTIONS_MAX = 1023 };

enum ldap_scope { LDAP_SCOPE_OF_SUBTREE, LDAP_SCOPE_OF_BASE, LDAP_SCOPE_OF_ONE_LEVEL };

/* Texts are owned; NULL means not given. */
struct ldap_options {
	char *server; /* one or more hosts, set apart by spaces; NULL: DNS knows them */
	unsigned port; /* 0: that of the scheme */
	bool ldaps; /* TLS from the first byte */
	bool start_tls; /* TLS after asking for it */
	char *prefix, *suffix; /* simple bind: around the name; both NULL: search and bind */
	char *base; /* of the search; never NULL in that mode */
	char *bind_dn, *bind_password; /* to search as; NULL: anonymously */
	char *attribute; /* that must equal the name; NULL: uid */
	char *filter; /* with $username in it, instead of the attribute */
	enum ldap_scope scope;
};

/*
 * Read the options. False: they are wrong, or there is no memory; `why` then says so, and there
 * is nothing to free.
 */
bool ldap_options_parse(const char *text, struct ldap_options *out, char *why, size_t size);

/* Wipe and free the texts. */
void ldap_options_free(struct ldap_options *options);

/* Is the user searched for, or is its DN made of prefix and suffix? */
static inline bool ldap_options_is_search(const struct ldap_options *options)
{
	return !options->prefix && !options->suffix;
}

#endif
