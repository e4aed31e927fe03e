/* SPDX-License-Identifier: ISC */
/*
 * LDAP options, then a user's name after a newline: accepted options have exactly one mode,
 * and a name in a filter is only ever a value.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/ldap/ldap_query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static size_t count(const char *text, char what)
{
	size_t found = 0;

	for (; *text != '\0'; text++)
		found += *text == what;
	return found;
}

static void check_options(const struct ldap_options *options)
{
	require(options->port <= 65535);
	require(!options->ldaps || !options->start_tls);
	require(!options->attribute || !options->filter);
	require(options->server || options->base);
	require(ldap_options_is_search(options) == (options->base != NULL));
}

static void check_filter(const struct ldap_options *options, const char *user)
{
	const char *template = options->filter ? options->filter : "()";
	char *filter = ldap_query_filter(options, user);

	require(filter != NULL);
	if (!options->attribute) {
		require(count(filter, '(') == count(template, '('));
		require(count(filter, ')') == count(template, ')'));
		require(count(filter, '*') == count(template, '*'));
	}
	free(filter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ldap_options options;
	char *text = malloc(size + 1), *user, *made;
	char why[64];

	require(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	user = strchr(text, '\n');
	if (user)
		*user++ = '\0';
	else
		user = text + size;
	if (ldap_options_parse(text, &options, why, sizeof(why))) {
		check_options(&options);
		check_filter(&options, user);
		made = ldap_query_dn(&options, user);
		require(made && strlen(made) >= strlen(user));
		free(made);
		made = ldap_query_uris(&options, "");
		require(made &&
			(!options.server || strlen(made) >= strspn(options.server, " ")));
		free(made);
		ldap_options_free(&options);
	} else {
		require(why[0] != '\0');
	}
	free(text);
	return 0;
}
