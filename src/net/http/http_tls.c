/* SPDX-License-Identifier: ISC */
/* HTTP over TLS: libevent's bufferevent of OpenSSL in place of a plain one. */
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>

#include "net/http/http_parts.h"

struct bufferevent *http_tls_new(struct event_base *base, const struct tls_context *context)
{
	SSL *ssl = SSL_new(context->ssl);
	struct bufferevent *stream;

	if (!ssl)
		return NULL;
	/* Only with this option the bufferevent frees the SSL object. */
	stream = bufferevent_openssl_socket_new(
		base, -1, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	if (!stream)
		SSL_free(ssl);
	return stream;
}

void http_tls_end(struct bufferevent *stream)
{
	SSL *ssl = bufferevent_openssl_get_ssl(stream);

	if (SSL_is_init_finished(ssl))
		SSL_shutdown(ssl);
	ERR_clear_error();
}
