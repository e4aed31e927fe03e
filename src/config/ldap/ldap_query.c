/* SPDX-License-Identifier: ISC */
#include "config/ldap/ldap_query.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"

#define PLACEHOLDER "$username"

enum { LDAP_PORT = 389, LDAPS_PORT = 636 };

bool ldap_query_allows(const char *user)
{
	return user[strcspn(user, "*()\\/")] == '\0';
}

/* Hand the buffer's text over to the caller. */
static char *detach_text(struct buffer *buffer)
{
	if (buffer_append(buffer, "", 1))
		return (char *)buffer->data;
	buffer_free(buffer);
	return NULL;
}

/*
 * RFC 4515 section 3: any octet may be written as \XX, and octets that are not UTF-8 must be.
 * Escaping all avoids the check.
 */
static void append_value(struct buffer *filter, const char *value)
{
	for (; *value != '\0'; value++) {
		const unsigned char byte = (unsigned char)*value;

		if (byte < 0x20 || byte >= 0x7f || strchr("*()\\", byte))
			buffer_printf(filter, "\\%02x", byte);
		else
			buffer_append(filter, value, 1);
	}
}

char *ldap_query_filter(const struct ldap_options *options, const char *user)
{
	const char *at = options->filter, *next;
	struct buffer filter;

	buffer_init(&filter);
	if (!at) {
		buffer_printf(&filter, "(%s=", options->attribute ? options->attribute : "uid");
		append_value(&filter, user);
		buffer_printf(&filter, ")");
		return detach_text(&filter);
	}
	while ((next = strstr(at, PLACEHOLDER)) != NULL) {
		buffer_append(&filter, at, (size_t)(next - at));
		append_value(&filter, user);
		at = next + strlen(PLACEHOLDER);
	}
	buffer_append(&filter, at, strlen(at));
	return detach_text(&filter);
}

char *ldap_query_dn(const struct ldap_options *options, const char *user)
{
	struct buffer dn;

	buffer_init(&dn);
	buffer_printf(&dn, "%s%s%s", options->prefix ? options->prefix : "", user,
		options->suffix ? options->suffix : "");
	return detach_text(&dn);
}

/* An IPv6 address needs brackets before a port can follow. */
static bool needs_brackets(const char *host, size_t length)
{
	return host[0] != '[' && memchr(host, ':', length) != memrchr(host, ':', length);
}

static void append_uri(struct buffer *uris, const struct ldap_options *options,
	const char *host, size_t length)
{
	const unsigned standard = options->ldaps ? LDAPS_PORT : LDAP_PORT;
	const bool brackets = needs_brackets(host, length);

	buffer_printf(uris, "%s%s://%s%.*s%s", uris->length > 0 ? " " : "",
		options->ldaps ? "ldaps" : "ldap", brackets ? "[" : "", (int)length, host,
		brackets ? "]" : "");
	/* Hosts from DNS already have a port. */
	if (options->server)
		buffer_printf(uris, ":%u", options->port ? options->port : standard);
}

char *ldap_query_uris(const struct ldap_options *options, const char *found)
{
	const char *at = options->server ? options->server : found;
	struct buffer uris;

	buffer_init(&uris);
	for (;;) {
		size_t length;

		at += strspn(at, " ");
		length = strcspn(at, " ");
		if (length == 0)
			return detach_text(&uris);
		append_uri(&uris, options, at, length);
		at += length;
	}
}
