/* SPDX-License-Identifier: ISC */
/*
 * The options of LDAP authentication: the value of auth_ldap_options, or the text after the
 * word `ldap` in an HBA file. They are parsed at each login.
 *
 * Items are `key=value`, separated by blanks, one comma, or both; key and value may be in
 * double quotes, in which "" is one quote. As in PgBouncer, parsing ends without an error at
 * the first item without `=`, key or value.
 */
#ifndef PGUSHER_CONFIG_LDAP_LDAP_OPTIONS_H
#define PGUSHER_CONFIG_LDAP_LDAP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the text that are parsed; the rest is ignored. */
enum { LDAP_OPTIONS_MAX = 1023 };

enum ldap_scope { LDAP_SCOPE_OF_SUBTREE, LDAP_SCOPE_OF_BASE, LDAP_SCOPE_OF_ONE_LEVEL };

/* Texts are owned; NULL: not given. */
struct ldap_options {
	char *server; /* one or more hosts, separated by spaces; NULL: looked up in DNS */
	unsigned port; /* 0: default of the scheme */
	bool ldaps; /* TLS from the first byte */
	bool start_tls; /* TLS started by StartTLS */
	/* Simple bind: put around the name; both NULL: search and bind. */
	char *prefix, *suffix;
	char *base; /* base DN of the search; never NULL in that mode */
	char *bind_dn, *bind_password; /* credentials for the search; NULL: anonymous */
	char *attribute; /* the attribute that must equal the name; NULL: uid */
	char *filter; /* search filter with $username, instead of the attribute */
	enum ldap_scope scope;
};

/*
 * Parse the options into `out`, which the caller frees. Returns false if they are wrong or
 * when out of memory; then `why` has the reason and `out` needs no freeing.
 */
bool ldap_options_parse(const char *text, struct ldap_options *out, char *why, size_t size);

/* Wipe and free the texts. */
void ldap_options_free(struct ldap_options *options);

/* Whether the user's DN is found by a search, not made of prefix and suffix. */
static inline bool ldap_options_is_search(const struct ldap_options *options)
{
	return !options->prefix && !options->suffix;
}

#endif
