/* SPDX-License-Identifier: ISC */
#include "net/tls_context.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
	VERIFY_DEPTH = 6,
	WORD_MAX = 32,
};

const unsigned char tls_alpn[TLS_ALPN_LENGTH + 1] = "\x0apostgresql";

/* RFC 7301 section 6 */
enum { HTTP_ALPN_LENGTH = 9 };
static const unsigned char http_alpn[HTTP_ALPN_LENGTH + 1] = "\x08http/1.1";

/* --- reasons of failures ------------------------------------------------------------------ */

/* Returns OpenSSL's reason of the last failure, or that of the system. */
static const char *reason_text(void)
{
	const unsigned long error = ERR_peek_last_error();
	const char *text = NULL;

	if (error != 0)
		text = ERR_SYSTEM_ERROR(error) ? strerror(ERR_GET_REASON(error))
					       : ERR_reason_error_string(error);
	ERR_clear_error();
	return text ? text : "unknown error";
}

/* Returns the system's reason if the file cannot be opened, else OpenSSL's. */
static const char *file_reason(const char *path)
{
	FILE *file = fopen(path, "r");

	if (!file) {
		ERR_clear_error();
		return strerror(errno);
	}
	fclose(file);
	return reason_text();
}

/* --- protocols ---------------------------------------------------------------------------- */

static const uint64_t every_version =
	SSL_OP_NO_TLSv1 | SSL_OP_NO_TLSv1_1 | SSL_OP_NO_TLSv1_2 | SSL_OP_NO_TLSv1_3;
static const uint64_t secure_versions = SSL_OP_NO_TLSv1_2 | SSL_OP_NO_TLSv1_3;

static uint64_t versions_of(const char *word)
{
	if (strcasecmp(word, "all") == 0 || strcasecmp(word, "tlsv1") == 0)
		return every_version;
	if (strcasecmp(word, "secure") == 0 || strcasecmp(word, "default") == 0)
		return secure_versions;
	if (strcasecmp(word, "tlsv1.0") == 0)
		return SSL_OP_NO_TLSv1;
	if (strcasecmp(word, "tlsv1.1") == 0)
		return SSL_OP_NO_TLSv1_1;
	if (strcasecmp(word, "tlsv1.2") == 0)
		return SSL_OP_NO_TLSv1_2;
	if (strcasecmp(word, "tlsv1.3") == 0)
		return SSL_OP_NO_TLSv1_3;
	return 0;
}

bool tls_protocols_parse(const char *text, uint64_t *off)
{
	uint64_t on = 0;
	bool first = true;

	while (*text) {
		size_t length;
		char word[WORD_MAX];
		bool negated;
		uint64_t versions;

		text += strspn(text, " \t");
		negated = *text == '!';
		text += negated;
		length = strcspn(text, ",:");
		if (length >= sizeof(word))
			return false;
		memcpy(word, text, length);
		word[length] = '\0';
		text += length;
		text += *text != '\0';
		if (length == 0 && !negated && *text == '\0' && first)
			break;
		versions = versions_of(word);
		if (versions == 0)
			return false;
		if (negated)
			on = (first ? every_version : on) & ~versions;
		else
			on |= versions;
		first = false;
	}
	*off = every_version & ~(first ? secure_versions : on);
	return true;
}

/* --- making a context --------------------------------------------------------------------- */

struct maker {
	const struct tls_options *options;
	SSL_CTX *ssl;
	char *why;
	size_t size;
};

#define refuse(maker, ...) (snprintf((maker)->why, (maker)->size, __VA_ARGS__), false)

static const char *side_name(const struct maker *maker)
{
	return maker->options->side == TLS_TOWARDS_CLIENTS ? "client" : "server";
}

static bool is_given(const char *text)
{
	return text && text[0] != '\0';
}

static bool is_own_choice(const char *text)
{
	return !is_given(text) || strcasecmp(text, "default") == 0 ||
		strcasecmp(text, "secure") == 0 || strcasecmp(text, "fast") == 0 ||
		strcasecmp(text, "normal") == 0;
}

static bool set_protocols(struct maker *maker)
{
	const char *text = maker->options->protocols;
	uint64_t off;

	if (!tls_protocols_parse(text ? text : "", &off))
		return refuse(maker, "invalid %s_tls_protocols: %s", side_name(maker), text);
	/* Override a lowest version of the system's policy: the setting decides. */
	SSL_CTX_set_min_proto_version(maker->ssl, TLS1_VERSION);
	SSL_CTX_set_options(maker->ssl, off);
	return true;
}

static bool set_ciphers(struct maker *maker)
{
	const struct tls_options *options = maker->options;
	/* Most processors have instructions for AES and SHA-256, but not for SHA-384. */
	static const char fast_first[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
					 "TLS_CHACHA20_POLY1305_SHA256";

	if (!is_own_choice(options->ciphers) &&
		SSL_CTX_set_cipher_list(maker->ssl, options->ciphers) != 1)
		return refuse(maker, "invalid %s_tls_ciphers: %s", side_name(maker),
			options->ciphers);
	if (!is_given(options->tls13_ciphers))
		SSL_CTX_set_ciphersuites(maker->ssl, fast_first);
	else if (!(SSL_CTX_get_options(maker->ssl) & SSL_OP_NO_TLSv1_3) &&
		SSL_CTX_set_ciphersuites(maker->ssl, options->tls13_ciphers) != 1)
		return refuse(
			maker, "TLS setup failed: failed to set the TLSv1.3 cipher suites");
	return true;
}

static bool set_key_exchange(struct maker *maker)
{
	const char *curve = maker->options->curve, *dh = maker->options->dheparams;

	if (!is_given(curve) || strcasecmp(curve, "auto") == 0)
		SSL_CTX_set1_groups_list(maker->ssl, "X25519:P-256:P-384:P-521");
	else if (strcasecmp(curve, "none") != 0 &&
		SSL_CTX_set1_groups_list(maker->ssl, curve) != 1)
		return refuse(maker, "invalid %s_tls_ecdhecurve: %s", side_name(maker), curve);
	if (!is_given(dh) || strcasecmp(dh, "auto") == 0)
		SSL_CTX_set_dh_auto(maker->ssl, 1);
	else if (strcasecmp(dh, "none") != 0)
		return refuse(maker, "invalid %s_tls_dheparams: %s", side_name(maker), dh);
	return true;
}

static bool load_authorities(struct maker *maker)
{
	const struct tls_options *options = maker->options;
	STACK_OF(X509_NAME) * names;

	if (options->trust == TLS_TRUST_ANY)
		return true;
	if (!is_given(options->ca_file)) {
		SSL_CTX_set_default_verify_paths(maker->ssl);
		return true;
	}
	if (SSL_CTX_load_verify_file(maker->ssl, options->ca_file) != 1)
		return refuse(maker, "TLS setup failed: failed to load CA: %s (%s)",
			options->ca_file, file_reason(options->ca_file));
	if (options->side == TLS_TOWARDS_SERVERS)
		return true;
	/* Clients use this list to choose a certificate that we can verify. */
	names = SSL_load_client_CA_file(options->ca_file);
	if (names)
		SSL_CTX_set_client_CA_list(maker->ssl, names);
	return true;
}

static bool load_revocations(struct maker *maker)
{
	const char *path = maker->options->crl_file;
	X509_STORE *store = SSL_CTX_get_cert_store(maker->ssl);
	X509_LOOKUP *lookup;

	if (!is_given(path))
		return true;
	lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
	if (!lookup || X509_load_crl_file(lookup, path, X509_FILETYPE_PEM) <= 0)
		return refuse(maker, "TLS setup failed: failed to load CRL file \"%s\": %s",
			path, file_reason(path));
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	return true;
}

/* Refuse a key with a pass phrase: a daemon cannot ask for one. */
static int no_phrase(char *out, int size, int writing, void *context)
{
	(void)out;
	(void)size;
	(void)writing;
	(void)context;
	return 0;
}

static bool load_certificate(struct maker *maker)
{
	const struct tls_options *options = maker->options;
	const bool cert = is_given(options->cert_file), key = is_given(options->key_file);

	if (options->side == TLS_TOWARDS_CLIENTS && (!cert || !key))
		return refuse(maker,
			"To allow TLS connections from clients, client_tls_key_file and "
			"client_tls_cert_file must be set.");
	if (!cert && !key)
		return true;
	SSL_CTX_set_default_passwd_cb(maker->ssl, no_phrase);
	if (cert && SSL_CTX_use_certificate_chain_file(maker->ssl, options->cert_file) != 1)
		return refuse(maker,
			"TLS setup failed: failed to load certificate file \"%s\": %s",
			options->cert_file, file_reason(options->cert_file));
	if (key &&
		SSL_CTX_use_PrivateKey_file(maker->ssl, options->key_file, SSL_FILETYPE_PEM) !=
			1) {
		if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH) {
			ERR_clear_error();
			return refuse(maker, "TLS setup failed: private/public key mismatch");
		}
		return refuse(maker,
			"TLS setup failed: failed to load private key file \"%s\": %s",
			options->key_file, file_reason(options->key_file));
	}
	if (!cert || !key || SSL_CTX_check_private_key(maker->ssl) != 1) {
		ERR_clear_error();
		return refuse(maker, "TLS setup failed: private/public key mismatch");
	}
	return true;
}

static int choose(const unsigned char *ours, unsigned int ours_length,
	const unsigned char **out, unsigned char *length, const unsigned char *in,
	unsigned int in_length)
{
	unsigned char *found;

	if (SSL_select_next_proto(&found, length, ours, ours_length, in, in_length) !=
		OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = found;
	return SSL_TLSEXT_ERR_OK;
}

/* Choose PostgreSQL's protocol from a client's ALPN list, and refuse a list without it. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *length,
	const unsigned char *in, unsigned int in_length, void *context)
{
	(void)ssl;
	(void)context;
	return choose(tls_alpn, TLS_ALPN_LENGTH, out, length, in, in_length);
}

/* The same with HTTP. */
static int choose_http(SSL *ssl, const unsigned char **out, unsigned char *length,
	const unsigned char *in, unsigned int in_length, void *context)
{
	(void)ssl;
	(void)context;
	return choose(http_alpn, HTTP_ALPN_LENGTH, out, length, in, in_length);
}

static void set_common_options(struct maker *maker)
{
	unsigned char id[16];

	/* No client of PostgreSQL resumes sessions: tickets would only cost time. */
	SSL_CTX_set_num_tickets(maker->ssl, 0);
	SSL_CTX_set_session_cache_mode(maker->ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(maker->ssl,
		SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
			SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(maker->ssl, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_verify_depth(maker->ssl, VERIFY_DEPTH);
	if (RAND_bytes(id, sizeof(id)) == 1)
		SSL_CTX_set_session_id_context(maker->ssl, id, sizeof(id));
	if (maker->options->side != TLS_TOWARDS_CLIENTS)
		return;
	SSL_CTX_set_alpn_select_cb(
		maker->ssl, maker->options->http ? choose_http : choose_protocol, NULL);
	/* Clients may send passwords: make OpenSSL wipe plain text that it has returned. */
	SSL_CTX_set_options(maker->ssl, SSL_OP_CLEANSE_PLAINTEXT);
}

static void set_trust(struct maker *maker)
{
	switch (maker->options->trust) {
	case TLS_TRUST_ANY:
		SSL_CTX_set_verify(maker->ssl, SSL_VERIFY_NONE, NULL);
		break;
	case TLS_TRUST_OFFERED:
		SSL_CTX_set_verify(maker->ssl, SSL_VERIFY_PEER, NULL);
		break;
	case TLS_TRUST_CHAIN:
	case TLS_TRUST_NAME:
		SSL_CTX_set_verify(
			maker->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
		break;
	}
}

static bool make(struct maker *maker)
{
	set_common_options(maker);
	set_trust(maker);
	return set_protocols(maker) && set_ciphers(maker) && set_key_exchange(maker) &&
		load_authorities(maker) && load_revocations(maker) && load_certificate(maker);
}

struct tls_context *tls_context_new(const struct tls_options *options, char *why, size_t size)
{
	struct tls_context *context = calloc(1, sizeof(*context));
	struct maker maker = {.options = options, .why = why, .size = size};

	ERR_clear_error();
	maker.ssl = SSL_CTX_new(options->side == TLS_TOWARDS_CLIENTS ? TLS_server_method()
								     : TLS_client_method());
	if (!context || !maker.ssl) {
		snprintf(why, size, "no memory");
	} else if (make(&maker)) {
		*context = (struct tls_context){
			.ssl = maker.ssl,
			.side = options->side,
			.trust = options->trust,
			.holders = 1,
		};
		return context;
	}
	ERR_clear_error();
	SSL_CTX_free(maker.ssl);
	free(context);
	return NULL;
}

long long tls_context_not_after(const struct tls_context *context)
{
	const X509 *certificate = SSL_CTX_get0_certificate(context->ssl);
	struct tm end = {0};

	if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1)
		return 0;
	return timegm(&end);
}

struct tls_context *tls_context_ref(struct tls_context *context)
{
	reference_take(&context->holders);
	return context;
}

void tls_context_unref(struct tls_context *context)
{
	if (!context || !reference_drop(&context->holders))
		return;
	SSL_CTX_free(context->ssl);
	free(context);
}
