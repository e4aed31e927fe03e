/* SPDX-License-Identifier: ISC */
#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

struct address address_of(const struct sockaddr *from, socklen_t length)
{
	struct address out = {.family = AF_UNSPEC};

	if (from->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)from;

		out.family = AF_INET;
		out.port = ntohs(in->sin_port);
		memcpy(out.bytes, &in->sin_addr, 4);
	} else if (from->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
		const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)from;

		out.family = AF_INET6;
		out.port = ntohs(in->sin6_port);
		memcpy(out.bytes, &in->sin6_addr, 16);
	} else if (from->sa_family == AF_UNIX) {
		out.family = AF_UNIX;
	}
	return out;
}

socklen_t address_socket(
	const struct address *address, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	out->ss_family = address->family;
	if (address->family == AF_INET) {
		memcpy(&in->sin_addr, address->bytes, sizeof(in->sin_addr));
		in->sin_port = htons(port);
		return sizeof(*in);
	}
	if (address->family == AF_INET6) {
		memcpy(&in6->sin6_addr, address->bytes, sizeof(in6->sin6_addr));
		in6->sin6_port = htons(port);
		return sizeof(*in6);
	}
	return 0;
}

struct address address_local(int fd)
{
	struct sockaddr_storage storage = {.ss_family = AF_UNSPEC};
	socklen_t length = sizeof(storage);

	if (fd < 0 || getsockname(fd, (struct sockaddr *)&storage, &length) != 0)
		return (struct address){.family = AF_UNSPEC};
	return address_of((const struct sockaddr *)&storage, length);
}

const char *address_host(const struct address *address, char out[ADDRESS_TEXT_SIZE])
{
	switch (address->family) {
	case AF_INET:
	case AF_INET6:
		if (inet_ntop(address->family, address->bytes, out, ADDRESS_TEXT_SIZE))
			return out;
		break;
	case AF_UNIX:
		return "unix";
	default:
		break;
	}
	return "(bad-af)";
}

const char *address_text(const struct address *address, char out[ADDRESS_TEXT_SIZE])
{
	char host[INET6_ADDRSTRLEN] = "";

	switch (address->family) {
	case AF_INET:
		inet_ntop(AF_INET, address->bytes, host, sizeof(host));
		snprintf(out, ADDRESS_TEXT_SIZE, "%s:%u", host, address->port);
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, address->bytes, host, sizeof(host));
		snprintf(out, ADDRESS_TEXT_SIZE, "[%s]:%u", host, address->port);
		break;
	case AF_UNIX:
		if (address->pid)
			snprintf(out, ADDRESS_TEXT_SIZE, "unix(%d):%u", address->pid,
				address->port);
		else
			snprintf(out, ADDRESS_TEXT_SIZE, "unix:%u", address->port);
		break;
	default:
		snprintf(out, ADDRESS_TEXT_SIZE, "(bad-af):0");
		break;
	}
	return out;
}

bool address_is_local(const struct address *address)
{
	struct in6_addr six;

	switch (address->family) {
	case AF_UNIX:
		return true;
	case AF_INET:
		return address->bytes[0] == 127;
	case AF_INET6:
		memcpy(&six, address->bytes, sizeof(six));
		return IN6_IS_ADDR_LOOPBACK(&six);
	default:
		return false;
	}
}

bool address_equal(const struct address *a, const struct address *b)
{
	if (a->family != b->family || a->port != b->port)
		return false;
	if (a->family == AF_UNIX || a->family == AF_UNSPEC)
		return true;
	return memcmp(a->bytes, b->bytes, a->family == AF_INET ? 4 : 16) == 0;
}

struct address address_unmapped(const struct address *address)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
	struct address out = *address;

	if (address->family != AF_INET6 || memcmp(address->bytes, prefix, sizeof(prefix)) != 0)
		return out;
	memset(&out, 0, sizeof(out));
	out.family = AF_INET;
	out.port = address->port;
	memcpy(out.bytes, address->bytes + sizeof(prefix), 4);
	return out;
}

struct address address_source(const struct address *address)
{
	enum { NETWORK_SIZE = 8 };
	const struct address unmapped = address_unmapped(address);
	struct address out;

	memset(&out, 0, sizeof(out));
	out.family = unmapped.family;
	if (out.family == AF_INET)
		memcpy(out.bytes, unmapped.bytes, 4);
	else if (out.family == AF_INET6)
		memcpy(out.bytes, unmapped.bytes, NETWORK_SIZE);
	return out;
}

socklen_t address_unix(struct sockaddr_un *out, const char *path)
{
	const size_t length = strlen(path);

	if (length >= sizeof(out->sun_path))
		return 0;
	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	memcpy(out->sun_path, path, length);
	if (path[0] != '@')
		return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
	/* Abstract name space, unix(7): the length delimits the name, there is no final NUL. */
	out->sun_path[0] = '\0';
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}
