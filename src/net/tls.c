/* SPDX-License-Identifier: ISC */
#include "net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "net/tls_parts.h"

enum {
	RECORD_MAX = 17 * 1024, /* the longest encrypted record. RFC 8446 section 5.2 */
	PART_LEAST = 256, /* fewer bytes without a whole record are no sign of a long one */
	/* There is room for the bytes of one receive and of an incomplete record. */
	ROOM_LEAST = 2 * RECORD_MAX,
	PARTS_MOST = RECORD_MAX / PART_LEAST,
};

static const struct stream_kind stream_tls;

/* --- the socket as an OpenSSL BIO --------------------------------------------------------- */

static int bio_read(BIO *bio, char *out, int size)
{
	struct tls *tls = BIO_get_data(bio);
	const size_t length = tls->in_length < (size_t)size ? tls->in_length : (size_t)size;

	BIO_clear_retry_flags(bio);
	if (length == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(out, tls->in, length);
	tls->in += length;
	tls->in_length -= length;
	return (int)length;
}

/* Collect records, so that a flight of the handshake or a long response is sent in one call. */
static int bio_write(BIO *bio, const char *data, int length)
{
	struct tls *tls = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	return buffer_append(&tls->buffers->sealed, data, (size_t)length) ? length : -1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method; /* NULL: out of memory; see bio_method() */

static void make_method(void)
{
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
	if (!method)
		return;
	BIO_meth_set_read(method, bio_read);
	BIO_meth_set_write(method, bio_write);
	BIO_meth_set_ctrl(method, bio_control);
}

/*
 * Returns the method, which is made once per process, by the thread that needs it first, and
 * never freed; NULL when memory was short then.
 */
static BIO_METHOD *bio_method(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_method);
	return method;
}

/* --- what went wrong ---------------------------------------------------------------------- */

static void note_error(struct tls *tls)
{
	const long verified = SSL_get_verify_result(tls->ssl);
	const unsigned long error = ERR_peek_error();
	const char *reason = error ? ERR_reason_error_string(error) : NULL;

	if (tls->error[0] == '\0') {
		if (ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED)
			snprintf(tls->error, TLS_ERROR_SIZE, "%s: %s", reason,
				X509_verify_cert_error_string(verified));
		else
			snprintf(tls->error, TLS_ERROR_SIZE, "%s",
				reason ? reason : "unknown error");
	}
	ERR_clear_error();
}

const char *tls_error(const struct stream *stream)
{
	return stream->tls && stream->tls->error[0] ? stream->tls->error : NULL;
}

/* --- sending ------------------------------------------------------------------------------ */

/* Encrypt these bytes into the loop's buffer. */
static bool seal_run(struct tls *tls, const void *data, size_t length)
{
	size_t written;

	while (length > 0) {
		if (SSL_write_ex(tls->ssl, data, length, &written) != 1) {
			note_error(tls);
			return false;
		}
		data = (const uint8_t *)data + written;
		length -= written;
	}
	return true;
}

/* Join small pieces first: each SSL_write makes a record of its own. */
static bool seal_pieces(struct tls *tls, const struct iovec *pieces, int count)
{
	struct buffer *joined = &tls->buffers->joined;

	if (count == 1)
		return seal_run(tls, pieces->iov_base, pieces->iov_len);
	buffer_clear(joined);
	for (int i = 0; i < count; i++) {
		if (joined->length + pieces[i].iov_len > TLS_JOINED_MAX) {
			if (!seal_run(tls, joined->data, joined->length))
				return false;
			buffer_clear(joined);
		}
		if (pieces[i].iov_len >= TLS_JOINED_MAX) {
			if (!seal_run(tls, pieces[i].iov_base, pieces[i].iov_len))
				return false;
		} else if (!buffer_append(joined, pieces[i].iov_base, pieces[i].iov_len)) {
			return false;
		}
	}
	return seal_run(tls, joined->data, joined->length);
}

static bool seal(
	struct stream *stream, const struct iovec *pieces, int count, struct iovec *out)
{
	struct tls *tls = stream->tls;
	struct buffer *sealed = &tls->buffers->sealed;

	if (tls->shaking_hands || tls->ended)
		return false;
	tls_buffers_clear(tls->buffers);
	ERR_clear_error();
	if (!seal_pieces(tls, pieces, count) || sealed->failed)
		return false;
	*out = (struct iovec){sealed->data, sealed->length};
	return true;
}

/* Send what OpenSSL has written itself: messages of the handshake, answers to key updates. */
static bool flush(struct stream *stream)
{
	struct buffer *sealed = &stream->tls->buffers->sealed;
	bool sent = true;

	if (sealed->failed)
		return false;
	if (sealed->length > 0)
		sent = stream_send_sealed(stream, sealed->data, sealed->length) !=
			STREAM_SENT_NOT;
	buffer_clear(sealed);
	return sent;
}

/* --- the handshake ------------------------------------------------------------------------ */

static bool check_name(struct tls *tls)
{
	if (!tls->name ||
		tls_certificate_has_name(SSL_get0_peer_certificate(tls->ssl), tls->name))
		return true;
	snprintf(tls->error, TLS_ERROR_SIZE, "name `%.80s' not present in server certificate",
		tls->name);
	return false;
}

static void count_handshake(const struct stream *stream, bool good)
{
	const struct tls *tls = stream->tls;

	histogram_add(&stream->loop->handshakes[tls->context->side][good],
		loop_now(stream->loop) - tls->begun);
}

/* Continue the handshake. Returns false when it has failed; OpenSSL's alert is then sent. */
static bool shake_hands(struct stream *stream)
{
	struct tls *tls = stream->tls;
	const int result = SSL_do_handshake(tls->ssl);

	if (result != 1) {
		const int error = SSL_get_error(tls->ssl, result);

		if (error == SSL_ERROR_WANT_READ)
			return flush(stream);
		note_error(tls);
		flush(stream);
		return false;
	}
	if (!check_name(tls))
		return false;
	if (!flush(stream))
		return false;
	tls->shaking_hands = false;
	count_handshake(stream, true);
	return true;
}

bool tls_is_shaking_hands(const struct stream *stream)
{
	return stream->tls && stream->tls->shaking_hands;
}

/* --- receiving ---------------------------------------------------------------------------- */

/* Decrypt all received records. Returns the number of bytes, possibly 0, or STREAM_BROKEN. */
static ssize_t open_sealed(struct tls *tls, uint8_t *data, size_t size)
{
	size_t total = 0, got;

	while (total < size && SSL_read_ex(tls->ssl, data + total, size - total, &got) == 1)
		total += got;
	CHECK(total < size); /* all was decrypted: receive() leaves enough room */
	switch (SSL_get_error(tls->ssl, 0)) {
	case SSL_ERROR_WANT_READ:
		break;
	case SSL_ERROR_ZERO_RETURN:
		tls->ended = true;
		break;
	default:
		note_error(tls);
		return STREAM_BROKEN;
	}
	return (ssize_t)total;
}

static ssize_t receive_sealed(struct stream *stream, uint8_t *data, size_t size)
{
	struct tls *tls = stream->tls;
	const bool begun = tls->shaking_hands;
	ssize_t got;

	if (begun && !shake_hands(stream))
		return STREAM_BROKEN;
	if (tls->shaking_hands)
		return STREAM_AGAIN;
	if (begun && stream->handlers->secured) {
		stream->handlers->secured(stream);
		if (!stream_is_open(stream))
			return STREAM_AGAIN;
		tls_buffers_clear(tls->buffers); /* the handler's messages are sent */
	}
	got = open_sealed(tls, data, size);
	if (!flush(stream))
		return STREAM_BROKEN;
	if (got < 0)
		return got;
	if (got == 0)
		return tls->ended ? STREAM_END : STREAM_AGAIN;
	/* close_notify came with the last bytes: no event of the kernel will report it. */
	if (tls->ended)
		stream_announce_unread(stream);
	return got;
}

/*
 * Receive no more than fits into `data` after decryption, together with the part of an
 * incomplete record that OpenSSL may still hold. Sets *part if the bytes received may have been
 * a part of a record.
 */
static ssize_t receive_part(struct stream *stream, void *data, size_t size, bool *part)
{
	struct tls *tls = stream->tls;
	ssize_t got;

	tls_buffers_clear(tls->buffers);
	got = stream_raw_receive(stream, tls->buffers->received,
		size - RECORD_MAX < TLS_RECEIVED_SIZE ? size - RECORD_MAX : TLS_RECEIVED_SIZE);
	if (got <= 0)
		return got;
	*part = got >= PART_LEAST;
	tls->in = tls->buffers->received;
	tls->in_length = (size_t)got;
	ERR_clear_error();
	return receive_sealed(stream, data, size);
}

/*
 * A socket buffer shorter than a record (tcp_socket_buffer) has the next part of the record as
 * soon as this one was received: a turn of the loop for each part would take longer.
 */
static ssize_t receive_records(struct stream *stream, void *data, size_t size)
{
	const struct tls *tls = stream->tls;
	int parts = 0;
	ssize_t got;
	bool part;

	CHECK(size > ROOM_LEAST);
	do {
		if (tls->ended)
			return STREAM_END;
		part = false;
		got = receive_part(stream, data, size, &part);
	} while (got == STREAM_AGAIN && part && stream_is_open(stream) && !tls->shaking_hands &&
		++parts < PARTS_MOST);
	return got;
}

/* Hand out decrypted bytes for which the caller had no room before. */
static ssize_t take_spare(struct stream *stream, void *data, size_t size)
{
	struct buffer *spare = &stream->tls->spare;
	const size_t length = size < spare->length ? size : spare->length;

	memcpy(data, spare->data, length);
	buffer_consume(spare, length);
	if (spare->length == 0)
		buffer_wipe(spare);
	/* No event of the kernel reports the rest, or a close_notify behind it. */
	if (spare->length > 0 || stream->tls->ended)
		stream_announce_unread(stream);
	return (ssize_t)length;
}

/* `data` may be too short for what a record holds. */
static ssize_t receive_little(struct stream *stream, void *data, size_t size)
{
	struct buffer *spare = &stream->tls->spare;
	uint8_t *area = buffer_extend(spare, TLS_RECEIVED_SIZE);
	ssize_t got;

	if (!area)
		return STREAM_BROKEN;
	got = receive_records(stream, area, TLS_RECEIVED_SIZE);
	if (got <= 0) {
		if (stream_is_open(stream))
			buffer_wipe(spare);
		return got;
	}
	buffer_shorten(spare, (size_t)got);
	return take_spare(stream, data, size);
}

/*
 * With small buffers of the kernel a long record is handed out in parts: each is sent at once, and
 * the receiver decrypts it while the next one is sealed.
 */
static ssize_t receive(struct stream *stream, void *data, size_t size)
{
	const size_t limit = stream->loop->receive_limit;

	stream->unread = false;
	if (limit > 0 && limit < size)
		size = limit;
	if (stream->tls->spare.length > 0)
		return take_spare(stream, data, size);
	if (size <= ROOM_LEAST)
		return receive_little(stream, data, size);
	return receive_records(stream, data, size);
}

ssize_t tls_receive_again(struct stream *stream, uint8_t *data, size_t length, size_t size)
{
	struct tls *tls = stream->tls;

	CHECK(length <= TLS_RECEIVED_SIZE);
	tls_buffers_clear(tls->buffers);
	memcpy(tls->buffers->received, data, length);
	tls->in = tls->buffers->received;
	tls->in_length = length;
	ERR_clear_error();
	return receive_sealed(stream, data, size);
}

/* --- opening and closing ------------------------------------------------------------------ */

static void free_tls(struct tls *tls)
{
	if (!tls)
		return;
	SSL_free(tls->ssl);
	tls_context_unref(tls->context);
	buffer_wipe(&tls->spare);
	free(tls->name);
	free(tls);
}

/*
 * Send close_notify, unless the peer has sent it. A failure does not matter. RFC 8446 section
 * 6.1
 */
static void shut_down(struct stream *stream)
{
	struct tls *tls = stream->tls;
	struct iovec rest;

	if (tls->shaking_hands || tls->ended || tls->error[0])
		return;
	tls_buffers_clear(tls->buffers);
	ERR_clear_error();
	SSL_shutdown(tls->ssl);
	ERR_clear_error();
	rest = (struct iovec){tls->buffers->sealed.data, tls->buffers->sealed.length};
	if (rest.iov_len > 0)
		stream_raw_send(stream, &rest, 1);
}

static void close_tls(struct stream *stream)
{
	if (stream->tls->shaking_hands && stream->loop)
		count_handshake(stream, false);
	free_tls(stream->tls);
	stream->tls = NULL;
	stream_raw_close(stream);
}

static struct tls *new_tls(struct stream *stream, struct tls_context *context)
{
	BIO_METHOD *of_ours = bio_method();
	struct tls *tls = calloc(1, sizeof(*tls));
	BIO *bio = of_ours ? BIO_new(of_ours) : NULL;

	if (!tls || !bio)
		goto failed;
	tls->buffers = tls_buffers_of(stream->loop);
	tls->ssl = tls->buffers ? SSL_new(context->ssl) : NULL;
	if (!tls->ssl)
		goto failed;
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	SSL_set_bio(tls->ssl, bio, bio);
	tls->context = tls_context_ref(context);
	tls->shaking_hands = true;
	tls->begun = loop_now(stream->loop);
	return tls;
failed:
	ERR_clear_error();
	BIO_free(bio);
	free(tls);
	return NULL;
}

static void leave(struct stream *stream)
{
	stream->tls->buffers = NULL;
	stream->tls->in = NULL; /* it points into the buffers */
	stream->tls->in_length = 0;
}

static bool join(struct stream *stream)
{
	stream->tls->buffers = tls_buffers_of(stream->loop);
	return stream->tls->buffers != NULL;
}

static const struct stream_kind stream_tls = {
	.receive = receive,
	.send = stream_raw_send,
	.close = close_tls,
	.seal = seal,
	.shut_down = shut_down,
	.leave = leave,
	.join = join,
};

bool tls_accept(struct stream *stream, struct tls_context *context)
{
	struct tls *tls = new_tls(stream, context);

	if (!tls)
		return false;
	SSL_set_accept_state(tls->ssl);
	stream->tls = tls;
	stream->kind = &stream_tls;
	return true;
}

/* Set the name for SNI and the check. RFC 6066 section 3: an IP address is not sent as SNI. */
static bool set_name(struct tls *tls, const char *name)
{
	if (!name)
		return true;
	if (tls->context->trust == TLS_TRUST_NAME) {
		tls->name = strdup(name);
		if (!tls->name)
			return false;
	}
	return tls_is_address(name) || SSL_set_tlsext_host_name(tls->ssl, name) == 1;
}

bool tls_connect(
	struct stream *stream, struct tls_context *context, const char *name, bool direct)
{
	struct tls *tls = new_tls(stream, context);

	if (!tls)
		return false;
	if (!set_name(tls, name) ||
		(direct && SSL_set_alpn_protos(tls->ssl, tls_alpn, TLS_ALPN_LENGTH) != 0)) {
		free_tls(tls);
		return false;
	}
	SSL_set_connect_state(tls->ssl);
	stream->tls = tls;
	stream->kind = &stream_tls;
	tls_buffers_clear(tls->buffers);
	ERR_clear_error();
	return shake_hands(stream);
}

/* --- information -------------------------------------------------------------------------- */

const char *tls_text(const struct stream *stream, char out[TLS_TEXT_SIZE])
{
	out[0] = '\0';
	if (stream->tls && !stream->tls->shaking_hands)
		snprintf(out, TLS_TEXT_SIZE, "%s/%s", SSL_get_version(stream->tls->ssl),
			SSL_get_cipher_name(stream->tls->ssl));
	return out;
}
