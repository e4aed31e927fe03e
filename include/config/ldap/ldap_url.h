/* SPDX-License-Identifier: ISC */
/*
 * LDAP URLs of RFC 4516: ldap[s]://host[:port]/basedn?attribute?scope?filter, for the option
 * ldapurl.
 */
#ifndef PGUSHER_CONFIG_LDAP_LDAP_URL_H
#define PGUSHER_CONFIG_LDAP_LDAP_URL_H

#include "config/ldap/ldap_options.h"

/*
 * Set the options that the URL contains: scheme and port always; server, base, attribute,
 * scope and filter if they are not empty. Of several attributes the first is used. Returns
 * false if the URL is malformed or requires an unknown extension, or when out of memory; some
 * options may be set then.
 */
bool ldap_url_parse_into(const char *url, struct ldap_options *options);

/* Parse a port from 1 to 65535 in decimal digits. */
bool ldap_port_parse(const char *digits, size_t length, unsigned *out);

#endif
