/* SPDX-License-Identifier: ISC */
#include "config/ldap/ldap_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "config/ldap/ldap_url.h"

#define BLANKS " \t\r\n"

/* The options being parsed, and the buffer for an error text. */
struct request {
	struct ldap_options *options;
	char *why;
	size_t size;
};

static bool refuse(const struct request *request, const char *what, const char *value)
{
	snprintf(request->why, request->size, "invalid LDAP %s: \"%s\"", what, value);
	return false;
}

static bool fail(const struct request *request, const char *why)
{
	snprintf(request->why, request->size, "%s", why);
	return false;
}

/* --- items -------------------------------------------------------------------------------- */

enum word { WORD_GOOD, WORD_EMPTY, WORD_UNFINISHED };

/* Unquote the text after an opening quote. `out` has room for the rest of the text. */
static enum word read_quoted(const char **at, char *out)
{
	const char *from = *at + 1;

	for (; *from != '"' || from[1] == '"'; from++) {
		if (*from == '\0')
			return WORD_UNFINISHED;
		*out++ = *from;
		from += *from == '"';
	}
	*out = '\0';
	*at = from + 1;
	return WORD_GOOD;
}

static enum word read_word(const char **at, const char *ends, char *out)
{
	size_t length;

	out[0] = '\0';
	if (**at == '"') {
		const enum word word = read_quoted(at, out);

		return word == WORD_GOOD && out[0] == '\0' ? WORD_EMPTY : word;
	}
	length = strcspn(*at, ends);
	memcpy(out, *at, length);
	out[length] = '\0';
	*at += length;
	return length > 0 ? WORD_GOOD : WORD_EMPTY;
}

static const char *skip_separators(const char *at)
{
	at += strspn(at, BLANKS);
	if (*at == ',')
		at++;
	return at + strspn(at, BLANKS);
}

/* Parse the next item. WORD_EMPTY: the end, or the place where parsing ends. */
static enum word next_item(const char **at, char *key, char *value)
{
	enum word word;

	*at = skip_separators(*at);
	word = read_word(at, BLANKS ",=\"", key);
	if (word != WORD_GOOD)
		return word;
	if (**at != '=')
		return WORD_EMPTY;
	++*at;
	return read_word(at, BLANKS ",\"", value);
}

/* --- keys --------------------------------------------------------------------------------- */

struct key {
	const char *name;
	bool (*set)(const struct request *request, const struct key *key, const char *value);
	size_t offset; /* of the field, if it is a text */
};

static bool set_text(const struct request *request, const struct key *key, const char *value)
{
	char **field = (char **)((char *)request->options + key->offset);
	char *copy = strdup(value);

	if (!copy)
		return fail(request, "out of memory");
	if (*field)
		explicit_bzero(*field, strlen(*field));
	free(*field);
	*field = copy;
	return true;
}

static bool set_port(const struct request *request, const struct key *key, const char *value)
{
	(void)key;
	return ldap_port_parse(value, strlen(value), &request->options->port) ||
		refuse(request, "port number", value);
}

static bool set_scheme(const struct request *request, const struct key *key, const char *value)
{
	(void)key;
	request->options->ldaps = strcmp(value, "ldaps") == 0;
	if (!request->options->ldaps && strcmp(value, "ldap") != 0)
		return refuse(request, "scheme", value);
	return true;
}

static bool set_tls(const struct request *request, const struct key *key, const char *value)
{
	(void)key;
	request->options->start_tls = strcmp(value, "1") == 0;
	return true;
}

static bool set_url(const struct request *request, const struct key *key, const char *value)
{
	(void)key;
	return ldap_url_parse_into(value, request->options) || refuse(request, "URL", value);
}

#define TEXT(field) set_text, offsetof(struct ldap_options, field)
static const struct key keys[] = {
	{"ldapbasedn", TEXT(base)},
	{"ldapbinddn", TEXT(bind_dn)},
	{"ldapbindpasswd", TEXT(bind_password)},
	{"ldapport", set_port},
	{"ldapprefix", TEXT(prefix)},
	{"ldapscheme", set_scheme},
	{"ldapsearchattribute", TEXT(attribute)},
	{"ldapsearchfilter", TEXT(filter)},
	{"ldapserver", TEXT(server)},
	{"ldapsuffix", TEXT(suffix)},
	{"ldaptls", set_tls},
	{"ldapurl", set_url},
	{NULL, NULL},
};
#undef TEXT

static bool set_option(const struct request *request, const char *name, const char *value)
{
	for (const struct key *key = keys; key->name; key++) {
		if (strcmp(key->name, name) == 0)
			return key->set(request, key, value);
	}
	return refuse(request, "option", name);
}

/* --- checks ------------------------------------------------------------------------------- */

static bool is_consistent(const struct request *request)
{
	const struct ldap_options *options = request->options;
	const bool simple = options->prefix || options->suffix;
	const bool search = options->base || options->bind_dn || options->bind_password ||
		options->attribute || options->filter;

	if (simple && search)
		return fail(request, "LDAP options have both a prefix or suffix and a search");
	if (!simple && !search)
		return fail(request,
			"LDAP options have neither ldapprefix, ldapsuffix nor "
			"ldapbasedn");
	if (search && !options->base)
		return fail(request, "LDAP options for a search lack ldapbasedn");
	if (options->attribute && options->filter)
		return fail(request, "LDAP options have both an attribute and a filter");
	if (options->ldaps && options->start_tls)
		return fail(request, "LDAP options ask for ldaps and for StartTLS");
	if (!options->server && !options->base)
		return fail(request, "LDAP options lack ldapserver");
	return true;
}

static bool parse(const struct request *request, const char *text)
{
	char cut[LDAP_OPTIONS_MAX + 1], key[sizeof(cut)], value[sizeof(cut)];
	const char *at = cut;
	bool good = true;
	enum word word = WORD_GOOD;

	text_copy(cut, sizeof(cut), text);
	while (good && (word = next_item(&at, key, value)) == WORD_GOOD)
		good = set_option(request, key, value);
	if (good && word == WORD_UNFINISHED)
		good = fail(request, "LDAP options have a quote that does not end");
	explicit_bzero(cut, sizeof(cut));
	explicit_bzero(value, sizeof(value));
	return good && is_consistent(request);
}

bool ldap_options_parse(const char *text, struct ldap_options *out, char *why, size_t size)
{
	const struct request request = {out, why, size};

	memset(out, 0, sizeof(*out));
	if (parse(&request, text))
		return true;
	ldap_options_free(out);
	return false;
}

void ldap_options_free(struct ldap_options *options)
{
	for (const struct key *key = keys; key->name; key++) {
		char **field = (char **)((char *)options + key->offset);

		if (key->set != set_text || !*field)
			continue;
		explicit_bzero(*field, strlen(*field));
		free(*field);
		*field = NULL;
	}
}
