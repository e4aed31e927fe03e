/* SPDX-License-Identifier: ISC */
/*
 * The search filter, DN and URIs of a request to an LDAP server, made from the options and a
 * user's name. Names come from peers: in the filter a name is always escaped to be a value.
 *
 * The caller owns the returned texts and frees them; NULL when out of memory.
 */
#ifndef PGUSHER_CONFIG_LDAP_LDAP_QUERY_H
#define PGUSHER_CONFIG_LDAP_LDAP_QUERY_H

#include "config/ldap/ldap_options.h"

/* Whether this name may be used in a search. Names with * ( ) \ or / may not. */
bool ldap_query_allows(const char *user);

/* The filter that finds the user, a name that ldap_query_allows() accepts. RFC 4515. */
char *ldap_query_filter(const struct ldap_options *options, const char *user);

/* The DN of a simple bind: prefix, name, suffix. */
char *ldap_query_dn(const struct ldap_options *options, const char *user);

/*
 * The servers to try, as URIs separated by spaces. `found` is a list of host:port from DNS,
 * for options without a server.
 */
char *ldap_query_uris(const struct ldap_options *options, const char *found);

#endif
