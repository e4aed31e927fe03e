/* SPDX-License-Identifier: ISC */
/*
 * What a directory is asked, made from the options and a user's name. Names come from peers: the
 * filter is built so that a name is never more than a value in it.
 *
 * Whatever is returned is the caller's, to be freed; NULL means that there is no memory.
 */
#ifndef PGUSHER_CONFIG_LDAP_QUERY_H
#define PGUSHER_CONFIG_LDAP_QUERY_H

#include "config/ldap_options.h"

/* May this name be searched for? Those with * ( ) \ or / in them may not. */
bool ldap_query_allows(const char *user);

/* The filter that finds the user, who must be allowed. RFC 4515. */
char *ldap_query_filter(const struct ldap_options *options, const char *user);

/* The DN of a simple bind: prefix, name, suffix. */
char *ldap_query_dn(const struct ldap_options *options, const char *user);

/*
 * The servers to try, as URIs set apart by spaces. `found` is a list of host:port that DNS knows,
 * for options without a server.
 */
char *ldap_query_uris(const struct ldap_options *options, const char *found);

#endif
