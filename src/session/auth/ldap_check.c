/* SPDX-License-Identifier: ISC */
/*
 * libldap, RFC 4511. Each check has handles of its own, so that no state is carried over from
 * one to the next. The trusted certificate authorities are those of the library's configuration
 * (ldap.conf, LDAPCONF, LDAPTLS_*).
 */
#include "session/auth/ldap_check.h"

#include <ldap.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "base/library.h"
#include "config/ldap/ldap_query.h"

enum {
	NETWORK_TIMEOUT = 3, /* seconds for each step: connecting, TLS, an answer */
	/*
	 * Limit for an answer, in bytes. An answer holds one name, so more indicates an attack.
	 */
	ANSWER_MAX = 1024 * 1024,
};

/* The library's functions that are used. It is loaded when a configuration uses LDAP. */
#define FUNCTIONS(ROW)                                                                         \
	ROW(ber_sockbuf_ctrl)                                                                  \
	ROW(ldap_count_entries)                                                                \
	ROW(ldap_dn2domain)                                                                    \
	ROW(ldap_domain2hostlist)                                                              \
	ROW(ldap_err2string)                                                                   \
	ROW(ldap_first_entry)                                                                  \
	ROW(ldap_get_dn)                                                                       \
	ROW(ldap_get_option)                                                                   \
	ROW(ldap_initialize)                                                                   \
	ROW(ldap_memfree)                                                                      \
	ROW(ldap_msgfree)                                                                      \
	ROW(ldap_sasl_bind_s)                                                                  \
	ROW(ldap_search_ext_s)                                                                 \
	ROW(ldap_set_option)                                                                   \
	ROW(ldap_start_tls_s)                                                                  \
	ROW(ldap_unbind_ext_s)

#define MEMBER(name) __typeof__(name) *(name);
struct functions {
	FUNCTIONS(MEMBER)
};

static struct functions library;
#undef MEMBER

const bool ldap_check_is_built_in = true;

static void set_answer(
	struct external_auth *request, enum external_auth_answer answer, const char *why)
{
	request->answer = answer;
	snprintf(request->why, sizeof(request->why), "%s", why);
}

/* Set the answer and the reason after an error: the library's text and the server's, if any. */
static void set_error(
	struct external_auth *request, LDAP *directory, const char *step, int error)
{
	char *detail = NULL;

	if (directory)
		library.ldap_get_option(directory, LDAP_OPT_DIAGNOSTIC_MESSAGE, &detail);
	request->answer =
		error == LDAP_INVALID_CREDENTIALS ? EXTERNAL_AUTH_WRONG : EXTERNAL_AUTH_FAILED;
	snprintf(request->why, sizeof(request->why), "%s: %s%s%s", step,
		library.ldap_err2string(error), detail && *detail ? ": " : "",
		detail ? detail : "");
	if (detail)
		library.ldap_memfree(detail);
}

static void close_directory(LDAP *directory)
{
	library.ldap_unbind_ext_s(directory, NULL, NULL);
}

/* --- connecting --------------------------------------------------------------------------- */

/*
 * Return the URIs of the servers that DNS has for the domain of the base DN (RFC 2782), for the
 * caller to free. Returns NULL when there are none; the answer is set then.
 */
static char *find_servers(struct external_auth *request)
{
	char *domain = NULL, *found = NULL, *uris = NULL;

	if (library.ldap_dn2domain(request->ldap.base, &domain) != LDAP_SUCCESS || !domain)
		set_answer(request, EXTERNAL_AUTH_FAILED,
			"the base DN names no domain to look for servers in");
	else if (library.ldap_domain2hostlist(domain, &found) != LDAP_SUCCESS || !found)
		set_answer(
			request, EXTERNAL_AUTH_FAILED, "DNS knows no server for the base DN");
	else
		uris = ldap_query_uris(&request->ldap, found);
	if (found)
		library.ldap_memfree(found);
	if (domain)
		library.ldap_memfree(domain);
	return uris;
}

static bool set_options(LDAP *directory)
{
	static const struct timeval timeout = {NETWORK_TIMEOUT, 0};
	static const int version = LDAP_VERSION3;
	Sockbuf *socket = NULL;
	ber_len_t most = ANSWER_MAX;

	return library.ldap_set_option(directory, LDAP_OPT_PROTOCOL_VERSION, &version) ==
		LDAP_OPT_SUCCESS &&
		library.ldap_set_option(directory, LDAP_OPT_NETWORK_TIMEOUT, &timeout) ==
		LDAP_OPT_SUCCESS &&
		library.ldap_set_option(directory, LDAP_OPT_TIMEOUT, &timeout) ==
		LDAP_OPT_SUCCESS &&
		library.ldap_get_option(directory, LDAP_OPT_SOCKBUF, &socket) ==
		LDAP_OPT_SUCCESS &&
		library.ber_sockbuf_ctrl(socket, LBER_SB_OPT_SET_MAX_INCOMING, &most) == 1;
}

/*
 * Return a handle. It is connected now if StartTLS is requested, else at its first use. Returns
 * NULL on failure; the answer is set then.
 */
static LDAP *open_directory(struct external_auth *request)
{
	char *uris = request->ldap.server ? ldap_query_uris(&request->ldap, NULL)
					  : find_servers(request);
	LDAP *directory = NULL;
	int error;

	if (!uris)
		return NULL;
	error = library.ldap_initialize(&directory, uris);
	free(uris);
	if (error != LDAP_SUCCESS) {
		set_error(request, NULL, "cannot use the server's name", error);
		return NULL;
	}
	if (!set_options(directory))
		set_answer(request, EXTERNAL_AUTH_FAILED,
			"cannot set options of the LDAP library");
	else if (!request->ldap.start_tls)
		return directory;
	else if ((error = library.ldap_start_tls_s(directory, NULL, NULL)) == LDAP_SUCCESS)
		return directory;
	else
		set_error(request, directory, "StartTLS", error);
	close_directory(directory);
	return NULL;
}

/* --- checking ----------------------------------------------------------------------------- */

static bool bind_as(
	struct external_auth *request, LDAP *directory, const char *dn, const char *password)
{
	struct berval secret = {strlen(password), (char *)password};
	const int error = library.ldap_sasl_bind_s(
		directory, dn, LDAP_SASL_SIMPLE, &secret, NULL, NULL, NULL);

	if (error != LDAP_SUCCESS)
		set_error(request, directory, "bind", error);
	return error == LDAP_SUCCESS;
}

/*
 * Return the DN of the only entry, for the caller to free. Returns NULL when the search failed
 * or did not find exactly one; the answer is set then.
 */
static char *take_dn(
	struct external_auth *request, LDAP *directory, LDAPMessage *entries, int error)
{
	const int count = library.ldap_count_entries(directory, entries);
	char *dn = NULL, *copy = NULL;

	if (count > 1 || error == LDAP_SIZELIMIT_EXCEEDED)
		set_answer(request, EXTERNAL_AUTH_WRONG, "the search found several entries");
	else if (error != LDAP_SUCCESS)
		set_error(request, directory, "search", error);
	else if (count < 1)
		set_answer(request, EXTERNAL_AUTH_WRONG, "the search found no entry");
	else
		dn = library.ldap_get_dn(
			directory, library.ldap_first_entry(directory, entries));
	/* An empty DN is the directory itself: a bind with it would be an anonymous one. */
	if (dn && *dn)
		copy = strdup(dn);
	else if (dn)
		set_answer(request, EXTERNAL_AUTH_WRONG,
			"the search found an entry without a name");
	if (dn)
		library.ldap_memfree(dn);
	return copy;
}

static char *search(struct external_auth *request, LDAP *directory)
{
	static const int scopes[] = {
		[LDAP_SCOPE_OF_SUBTREE] = LDAP_SCOPE_SUBTREE,
		[LDAP_SCOPE_OF_BASE] = LDAP_SCOPE_BASE,
		[LDAP_SCOPE_OF_ONE_LEVEL] = LDAP_SCOPE_ONELEVEL,
	};
	static char none[] = LDAP_NO_ATTRS;
	static char *attributes[] = {none, NULL};
	struct timeval timeout = {NETWORK_TIMEOUT, 0};
	char *filter = ldap_query_filter(&request->ldap, request->user), *dn = NULL;
	LDAPMessage *entries = NULL;
	int error;

	if (!filter)
		return NULL;
	/* Ask for two entries at most: the second one already makes the search ambiguous. */
	error = library.ldap_search_ext_s(directory, request->ldap.base,
		scopes[request->ldap.scope], filter, attributes, 0, NULL, NULL, &timeout, 2,
		&entries);
	dn = take_dn(request, directory, entries, error);
	if (entries)
		library.ldap_msgfree(entries);
	free(filter);
	return dn;
}

/*
 * Return the user's DN, for the caller to free. A search uses a connection of its own, bound as
 * the user of the option ldapbinddn. Returns NULL on failure; the answer is set then.
 */
static char *find_dn(struct external_auth *request)
{
	const struct ldap_options *options = &request->ldap;
	LDAP *directory;
	char *dn = NULL;

	if (!ldap_options_is_search(options))
		return ldap_query_dn(options, request->user);
	if (!ldap_query_allows(request->user)) {
		set_answer(request, EXTERNAL_AUTH_WRONG,
			"the user's name has a meaning in filters");
		return NULL;
	}
	directory = open_directory(request);
	if (!directory)
		return NULL;
	if (bind_as(request, directory, options->bind_dn ? options->bind_dn : "",
		    options->bind_password ? options->bind_password : ""))
		dn = search(request, directory);
	else
		request->answer = EXTERNAL_AUTH_FAILED; /* of pgusher's own bind */
	close_directory(directory);
	return dn;
}

/*
 * The library initializes itself and TLS at their first use, without a lock: do it once, before
 * several threads use the library. An error is ignored: it will be reported again when a check
 * needs TLS.
 */
static void initialize(void)
{
	const int is_server = 0;

	library.ldap_set_option(NULL, LDAP_OPT_X_TLS_NEWCTX, &is_server);
}

void ldap_check(struct external_auth *request)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	LDAP *directory = NULL;
	char *dn;

	pthread_once(&once, initialize);
	set_answer(request, EXTERNAL_AUTH_FAILED, "out of memory"); /* unless replaced below */
	dn = find_dn(request);
	if (dn)
		directory = open_directory(request);
	if (directory) {
		if (bind_as(request, directory, dn, request->password))
			set_answer(request, EXTERNAL_AUTH_RIGHT, "");
		close_directory(directory);
	}
	free(dn);
}

bool ldap_check_load(char *why, size_t size)
{
#define SYMBOL(name) {#name, offsetof(struct functions, name)},
	static const struct library_symbol symbols[] = {FUNCTIONS(SYMBOL)};
#undef SYMBOL

	return library_load(
		LDAP_LIBRARY, symbols, sizeof(symbols) / sizeof(*symbols), &library, why, size);
}
