/* SPDX-License-Identifier: ISC */
#include "config/ldap/ldap_url.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool ldap_port_parse(const char *digits, size_t length, unsigned *out)
{
	unsigned port = 0;

	for (size_t i = 0; i < length; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return false;
		port = port * 10 + (unsigned)(digits[i] - '0');
		if (port > 65535)
			return false;
	}
	if (port > 0)
		*out = port;
	return port > 0;
}

static int digit_of(char hex)
{
	static const char digits[] = "0123456789abcdef";
	const char *at =
		hex ? strchr(digits, hex >= 'A' && hex <= 'F' ? hex | 0x20 : hex) : NULL;

	return at ? (int)(at - digits) : -1;
}

/*
 * Decode the %XX of a part of the URL. Returns memory that the caller frees; NULL: malformed,
 * or out of memory.
 */
static char *decode(const char *part, size_t length)
{
	char *text = malloc(length + 1), *out = text;

	for (size_t i = 0; text && i < length; i++) {
		const bool escaped = part[i] == '%';
		const int high = escaped && i + 2 < length ? digit_of(part[i + 1]) : -1;
		const int low = high >= 0 ? digit_of(part[i + 2]) : -1;

		if (escaped && (low < 0 || (high == 0 && low == 0))) {
			free(text);
			return NULL;
		}
		*out++ = escaped ? (char)(high * 16 + low) : part[i];
		i += escaped ? 2 : 0;
	}
	if (text)
		*out = '\0';
	return text;
}

/* Replace a field by a part of the URL; an empty part changes nothing. */
static bool set_field(char **field, const char *part, size_t length)
{
	char *text;

	if (length == 0)
		return true;
	text = decode(part, length);
	if (!text)
		return false;
	free(*field);
	*field = text;
	return true;
}

static bool set_scope(const char *part, size_t length, struct ldap_options *options)
{
	static const struct {
		const char *word;
		enum ldap_scope scope;
	} scopes[] = {
		{"base", LDAP_SCOPE_OF_BASE},
		{"one", LDAP_SCOPE_OF_ONE_LEVEL},
		{"onelevel", LDAP_SCOPE_OF_ONE_LEVEL},
		{"sub", LDAP_SCOPE_OF_SUBTREE},
		{"subtree", LDAP_SCOPE_OF_SUBTREE},
	};

	for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
		if (strlen(scopes[i].word) == length &&
			strncasecmp(scopes[i].word, part, length) == 0) {
			options->scope = scopes[i].scope;
			return true;
		}
	}
	return length == 0;
}

/* RFC 4516: a critical extension must be understood, and none is supported. */
static bool are_extensions_harmless(const char *part)
{
	for (; *part != '\0'; part += strcspn(part, ","), part += *part == ',') {
		if (*part == '!' || strncasecmp(part, "%21", 3) == 0)
			return false;
	}
	return true;
}

/* Parse `host`, `host:port` or `[address]:port`; host and port may be missing. */
static bool set_host(const char *part, size_t length, struct ldap_options *options)
{
	const char *bracket = length > 0 && *part == '[' ? memchr(part, ']', length) : NULL;
	const char *after = bracket ? bracket + 1 : part;
	const char *colon = memchr(after, ':', length - (size_t)(after - part));
	const char *end = part + length;

	options->port = 0;
	if (colon && !ldap_port_parse(colon + 1, (size_t)(end - colon - 1), &options->port))
		return false;
	/* A decoded blank would make it a list of hosts, which only ldapserver may be. */
	return set_field(&options->server, part, (size_t)((colon ? colon : end) - part)) &&
		(!options->server || !strchr(options->server, ' '));
}

/* Returns the part up to the next question mark and moves past it. */
static const char *next_part(const char **at, size_t *length)
{
	const char *part = *at;

	*length = strcspn(part, "?");
	*at = part + *length;
	*at += **at == '?';
	return part;
}

static const char *skip_scheme(const char *url, struct ldap_options *options)
{
	options->ldaps = strncasecmp(url, "ldaps://", 8) == 0;
	if (options->ldaps)
		return url + 8;
	return strncasecmp(url, "ldap://", 7) == 0 ? url + 7 : NULL;
}

bool ldap_url_parse_into(const char *url, struct ldap_options *options)
{
	const char *at = skip_scheme(url, options), *part;
	size_t length;

	if (!at || !set_host(at, strcspn(at, "/?"), options))
		return false;
	at += strcspn(at, "/?");
	if (*at == '?')
		return false;
	at += *at == '/';
	part = next_part(&at, &length);
	if (!set_field(&options->base, part, length))
		return false;
	part = next_part(&at, &length);
	if (!set_field(&options->attribute, part, strcspn(part, ",?")))
		return false;
	part = next_part(&at, &length);
	if (!set_scope(part, length, options))
		return false;
	part = next_part(&at, &length);
	return set_field(&options->filter, part, length) && are_extensions_harmless(at);
}
