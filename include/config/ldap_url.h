/* SPDX-License-Identifier: ISC */
/* RFC 4516: ldap[s]://host[:port]/basedn?attribute?scope?filter, as the option ldapurl. */
#ifndef PGUSHER_CONFIG_LDAP_URL_H
#define PGUSHER_CONFIG_LDAP_URL_H

#include "config/ldap_options.h"

/*
 * Set what the URL has: scheme and port always, server, base, attribute, scope and filter where
 * they are not empty. Of several attributes the first counts. False: it is malformed, asks for
 * an extension that nobody knows, or there is no memory; some options may have been set then.
 */
bool ldap_url_parse_into(const char *url, struct ldap_options *options);

/* A port from 1 to 65535 in decimal digits. */
bool ldap_port_parse(const char *digits, size_t length, unsigned *out);

#endif
