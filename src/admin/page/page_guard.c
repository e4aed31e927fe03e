/* SPDX-License-Identifier: ISC */
#include "admin/page/page_guard.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/log.h"
#include "crypt/base64.h"
#include "crypt/digest.h"

static const char plain[] = "text/plain; charset=utf-8";

void page_guard_init(struct page_guard *guard, struct loop *loop)
{
	*guard = (struct page_guard){.loop = loop};
	if (gethostname(guard->machine, sizeof(guard->machine) - 1) != 0)
		guard->machine[0] = '\0';
}

/* --- the Host header ---------------------------------------------------------------------- */

bool page_guard_host_is_safe(const char *host, const char *machine)
{
	unsigned char address[sizeof(struct in6_addr)];
	char name[256];
	size_t length;

	if (host[0] == '[')
		length = strcspn(++host, "]");
	else
		length = strcspn(host, ":");
	if (length == 0 || length >= sizeof(name))
		return false;
	memcpy(name, host, length);
	name[length] = '\0';
	return inet_pton(AF_INET, name, address) == 1 ||
		inet_pton(AF_INET6, name, address) == 1 || strcasecmp(name, "localhost") == 0 ||
		strcasecmp(name, machine) == 0;
}

/* A client without a Host header is no browser. */
static bool is_meant_for_us(const struct page_guard *guard, const struct http_request *request)
{
	const char *host = http_header(request, "Host");

	return host[0] == '\0' || page_guard_host_is_safe(host, guard->machine);
}

/* --- the password ------------------------------------------------------------------------- */

static const char scheme[] = "Basic ";
enum { SCHEME_LENGTH = sizeof(scheme) - 1 };

/* Compare digests, so that the time tells nothing of the password, not even its length. */
static bool is_equal(const char *a, size_t a_length, const char *b)
{
	const struct digest_piece left = {a, a_length}, right = {b, strlen(b)};
	uint8_t x[SHA256_SIZE], y[SHA256_SIZE];
	const bool equal = digest_of(DIGEST_SHA256, &left, 1, x) &&
		digest_of(DIGEST_SHA256, &right, 1, y) && CRYPTO_memcmp(x, y, SHA256_SIZE) == 0;

	explicit_bzero(x, sizeof(x));
	explicit_bzero(y, sizeof(y));
	return equal;
}

/* RFC 7617: base64 of the user name, which has no colon, a colon and the password. */
bool page_guard_password_is(const char *header, const char *password)
{
	char decoded[HTTP_HEADERS_SIZE];
	const char *encoded = header + SCHEME_LENGTH, *colon;
	ssize_t length;
	bool equal;

	if (strncasecmp(header, scheme, SCHEME_LENGTH) != 0)
		return false;
	encoded += strspn(encoded, " ");
	length = base64_decode(encoded, strlen(encoded), decoded, sizeof(decoded));
	colon = length > 0 ? memchr(decoded, ':', (size_t)length) : NULL;
	equal = colon &&
		is_equal(colon + 1, (size_t)(decoded + length - (colon + 1)), password);
	explicit_bzero(decoded, sizeof(decoded));
	return equal;
}

static bool is_known(const struct page_guard *guard, const struct address *source)
{
	for (unsigned i = 0; i < PAGE_GUARD_KNOWN; i++) {
		if (guard->known[i].family != AF_UNSPEC &&
			address_equal(&guard->known[i], source))
			return true;
	}
	return false;
}

static void remember(struct page_guard *guard, const struct address *source)
{
	if (is_known(guard, source))
		return;
	guard->known[guard->next_known] = *source;
	guard->next_known = (guard->next_known + 1) % PAGE_GUARD_KNOWN;
}

static bool may_try(const struct page_guard *guard, const struct address *source, bool known)
{
	unsigned waiting = 0, all = 0;

	for (unsigned i = 0; i < PAGE_GUARD_HELD; i++) {
		const struct held_request *held = &guard->held[i];

		if (!held->request)
			continue;
		all++;
		waiting += known ? held->is_known && address_equal(&held->source, source)
				 : !held->is_known;
	}
	return all < PAGE_GUARD_HELD &&
		waiting < (known ? PAGE_GUARD_OF_ONE : PAGE_GUARD_STRANGERS);
}

static void ask_for_password(struct http_request *request)
{
	http_add_header(
		request, "WWW-Authenticate", "Basic realm=\"pgusher\", charset=\"UTF-8\"");
	http_reply_text(request, 401, plain, "the password of page_password is needed\n");
}

static void let_go(struct held_request *held)
{
	struct http_request *request = held->request;

	held->request = NULL;
	ask_for_password(request);
}

static void on_delay_over(struct deadline *deadline)
{
	let_go((struct held_request *)((char *)deadline -
		offsetof(struct held_request, deadline)));
}

/* There is a free place: see may_try(). */
static void hold(struct page_guard *guard, struct http_request *request,
	const struct address *source, bool known)
{
	struct held_request *held = guard->held;

	while (held->request)
		held++;
	*held = (struct held_request){
		.deadline.expire = on_delay_over,
		.guard = guard,
		.request = request,
		.source = *source,
		.is_known = known,
	};
	wheel_set(
		&guard->loop->wheel, &held->deadline, loop_now(guard->loop) + PAGE_GUARD_DELAY);
}

static void log_failure(const struct address *source)
{
	char text[ADDRESS_TEXT_SIZE];
	const struct log_likeness alike = {
		.kind = "wrong page_password", .about = "", .at_most = 1};

	log_write_repeated(LEVEL_WARNING, NULL, &alike, "wrong page_password from %s",
		address_host(source, text));
}

static bool has_password(
	struct page_guard *guard, struct http_request *request, const char *password)
{
	const char *header = http_header(request, "Authorization");
	const struct address client = http_client(request), source = address_source(&client);
	const bool known = is_known(guard, &source);
	bool right;

	/* Not an attempt: browsers send no password before they are asked for one. */
	if (strncasecmp(header, scheme, SCHEME_LENGTH) != 0) {
		ask_for_password(request);
		return false;
	}
	if (!may_try(guard, &source, known)) {
		http_wipe_header(request, "Authorization");
		http_add_header(request, "Retry-After", "1");
		http_reply_text(request, 429, plain, "too many wrong passwords\n");
		return false;
	}
	right = page_guard_password_is(header, password);
	http_wipe_header(request, "Authorization");
	if (right) {
		remember(guard, &source);
		return true;
	}
	log_failure(&client);
	hold(guard, request, &source, known);
	return false;
}

bool page_guard_admits(
	struct page_guard *guard, struct http_request *request, const struct settings *settings)
{
	if (settings->page_password[0] != '\0')
		return has_password(guard, request, settings->page_password);
	if (settings->metrics_tls || is_meant_for_us(guard, request))
		return true;
	http_reply_text(request, 421, plain,
		"Open the page by an address, as localhost, or by the name of the machine: another "
		"site may have made up this name. With page_password or metrics_tls any name is "
		"good.\n");
	return false;
}

void page_guard_stop(struct page_guard *guard)
{
	for (unsigned i = 0; i < PAGE_GUARD_HELD; i++) {
		if (!guard->held[i].request)
			continue;
		wheel_remove(&guard->loop->wheel, &guard->held[i].deadline);
		let_go(&guard->held[i]);
	}
}
