/* SPDX-License-Identifier: ISC */
#include "net/proxy_header.h"

#include <arpa/inet.h>
#include <string.h>

static enum proxy_header_result malformed(struct proxy_header *out, const char *fault)
{
	out->fault = fault;
	return PROXY_HEADER_MALFORMED;
}

/* --- version 1: a line of text (section 2.1) ---------------------------------------------- */

static const char line_signature[] = "PROXY ";

enum { LINE_SIGNATURE_SIZE = sizeof(line_signature) - 1 };

/* Take the next word from *cursor; words are separated by exactly one blank. */
static char *next_word(char **cursor)
{
	char *word = strsep(cursor, " ");

	return word ? word : "";
}

/* An IPv4 address has no leading zeros, which inet_pton() refuses too; an IPv6 one no zone. */
static bool read_address(const char *word, struct address *out)
{
	return inet_pton(out->family, word, out->bytes) == 1;
}

/* A decimal number without leading zeros. */
static bool read_port(const char *word, uint16_t *out)
{
	const size_t length = strspn(word, "0123456789");
	unsigned number = 0;

	if (length == 0 || length > 5 || word[length] != '\0' || (word[0] == '0' && length > 1))
		return false;
	for (size_t i = 0; i < length; i++)
		number = number * 10 + (unsigned)(word[i] - '0');
	*out = (uint16_t)number;
	return number <= UINT16_MAX;
}

/* Read what follows the signature: without CR LF, with a NUL. */
static enum proxy_header_result read_words(char *cursor, struct proxy_header *out)
{
	const char *const protocol = next_word(&cursor);
	struct address client = {0}, destination = {0};

	out->relayed = true;
	if (strcmp(protocol, "UNKNOWN") == 0)
		return PROXY_HEADER_WHOLE; /* and any text behind it */
	if (strcmp(protocol, "TCP4") == 0)
		client.family = destination.family = AF_INET;
	else if (strcmp(protocol, "TCP6") == 0)
		client.family = destination.family = AF_INET6;
	else
		return malformed(out, "its protocol is none of TCP4, TCP6 and UNKNOWN");
	if (!read_address(next_word(&cursor), &client) ||
		!read_address(next_word(&cursor), &destination))
		return malformed(out, "an address is invalid");
	if (!read_port(next_word(&cursor), &client.port) ||
		!read_port(next_word(&cursor), &destination.port) || cursor)
		return malformed(out, "a port is invalid");
	out->client = address_unmapped(&client);
	return PROXY_HEADER_WHOLE;
}

static bool is_printable(uint8_t byte)
{
	return byte >= ' ' && byte <= '~';
}

static enum proxy_header_result read_line(
	const uint8_t *data, size_t length, struct proxy_header *out)
{
	const size_t most = length < PROXY_HEADER_LINE_MAX ? length : PROXY_HEADER_LINE_MAX;
	char words[PROXY_HEADER_LINE_MAX + 1];
	size_t end = 0;

	while (end < most && is_printable(data[end]))
		end++;
	if (end < most && data[end] != '\r')
		return malformed(out, "it has a character that is not printable ASCII");
	if (end + 1 < most && data[end + 1] != '\n')
		return malformed(out, "it has a carriage return inside");
	if (end + 2 > PROXY_HEADER_LINE_MAX)
		return malformed(out, "its line is longer than 107 bytes");
	if (end + 2 > length)
		return PROXY_HEADER_INCOMPLETE;
	memcpy(words, data + LINE_SIGNATURE_SIZE, end - LINE_SIGNATURE_SIZE);
	words[end - LINE_SIGNATURE_SIZE] = '\0';
	out->size = end + 2;
	return read_words(words, out);
}

/* --- version 2: a binary header (section 2.2) --------------------------------------------- */

static const uint8_t binary_signature[12] = "\r\n\r\n\0\r\nQUIT\n";

enum {
	FIXED_SIZE = 16, /* signature, version and command, family, length */
	COMMAND_LOCAL = 0x20, /* with the version, 2 */
	COMMAND_PROXY = 0x21,
	UNSPECIFIED = 0x00, /* families with protocols */
	TCP_OVER_IPV4 = 0x11,
	UDP_OVER_IPV4 = 0x12,
	TCP_OVER_IPV6 = 0x21,
	UDP_OVER_IPV6 = 0x22,
	UNIX_STREAM = 0x31,
	UNIX_DATAGRAM = 0x32,
	IPV4_SIZE = 2 * 4 + 2 * 2, /* both addresses, both ports */
	IPV6_SIZE = 2 * 16 + 2 * 2,
	UNIX_SIZE = 2 * 108,
	TLV_HEADER_SIZE = 3, /* type, length */
	TLV_CRC32C = 0x03,
	CRC32C_SIZE = 4,
};

static uint16_t number16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t number32(const uint8_t *at)
{
	return (uint32_t)number16(at) << 16 | number16(at + 2);
}

/* RFC 4960 appendix B, of the header with zeros in place of the checksum itself. */
static uint32_t checksum_of(const uint8_t *header, size_t size, size_t place)
{
	uint32_t remainder = ~(uint32_t)0;

	for (size_t i = 0; i < size; i++) {
		if (i < place || i >= place + CRC32C_SIZE)
			remainder ^= header[i];
		for (int bit = 0; bit < 8; bit++)
			remainder = remainder >> 1 ^ (remainder & 1 ? 0x82f63b78 : 0);
	}
	return ~remainder;
}

/* Walk over the TLVs from `at` to the end. Returns NULL, or what is wrong with them. */
static const char *check_tlvs(const uint8_t *header, size_t size, size_t at)
{
	bool checked = false;

	while (at < size) {
		const uint8_t *const tlv = header + at;
		size_t length;

		if (size - at < TLV_HEADER_SIZE)
			return "the information behind its addresses is cut off";
		length = number16(tlv + 1);
		at += TLV_HEADER_SIZE;
		if (size - at < length)
			return "the information behind its addresses is cut off";
		if (tlv[0] == TLV_CRC32C) {
			if (checked || length != CRC32C_SIZE ||
				number32(header + at) != checksum_of(header, size, at))
				return "its checksum is wrong";
			checked = true;
		}
		at += length;
	}
	return NULL;
}

/* Returns the size of the addresses of this family, -1 if there is no such family. */
static int addresses_size(uint8_t family)
{
	switch (family) {
	case UNSPECIFIED:
		return 0;
	case TCP_OVER_IPV4:
	case UDP_OVER_IPV4:
		return IPV4_SIZE;
	case TCP_OVER_IPV6:
	case UDP_OVER_IPV6:
		return IPV6_SIZE;
	case UNIX_STREAM:
	case UNIX_DATAGRAM:
		return UNIX_SIZE;
	default:
		return -1;
	}
}

/* The sources of other families than TCP are not used. */
static struct address client_of(uint8_t family, const uint8_t *addresses)
{
	struct address client = {.family = AF_UNSPEC};

	if (family == TCP_OVER_IPV4) {
		client.family = AF_INET;
		memcpy(client.bytes, addresses, 4);
		client.port = number16(addresses + 8);
	} else if (family == TCP_OVER_IPV6) {
		client.family = AF_INET6;
		memcpy(client.bytes, addresses, 16);
		client.port = number16(addresses + 32);
	}
	return address_unmapped(&client);
}

/* Read the header of a relayed connection, which is complete. */
static enum proxy_header_result read_relayed(const uint8_t *data, struct proxy_header *out)
{
	const uint8_t family = data[13];
	const size_t addresses = (size_t)addresses_size(family);
	const char *fault = NULL;

	if (out->size - FIXED_SIZE < addresses)
		return malformed(out, "it is too short for its addresses");
	/* What follows no addresses has no structure: the receiver ignores it. */
	if (family != UNSPECIFIED)
		fault = check_tlvs(data, out->size, FIXED_SIZE + addresses);
	if (fault)
		return malformed(out, fault);
	out->relayed = true;
	out->client = client_of(family, data + FIXED_SIZE);
	return PROXY_HEADER_WHOLE;
}

/*
 * Mistakes are found as soon as their bytes are there, so that nothing is kept of a header that
 * is too long.
 */
static enum proxy_header_result read_binary(
	const uint8_t *data, size_t length, struct proxy_header *out)
{
	if (length > 12 && data[12] >> 4 != 2)
		return malformed(out, "its version is not 2");
	if (length > 12 && data[12] != COMMAND_LOCAL && data[12] != COMMAND_PROXY)
		return malformed(out, "its command is neither LOCAL nor PROXY");
	if (length > 13 && data[12] == COMMAND_PROXY && addresses_size(data[13]) < 0)
		return malformed(out, "its address family or protocol is unknown");
	if (length < FIXED_SIZE)
		return PROXY_HEADER_INCOMPLETE;
	out->size = FIXED_SIZE + (size_t)number16(data + 14);
	if (out->size > PROXY_HEADER_MAX)
		return malformed(out, "it is longer than 4096 bytes");
	if (out->size > length)
		return PROXY_HEADER_INCOMPLETE;
	if (data[12] == COMMAND_PROXY)
		return read_relayed(data, out);
	return PROXY_HEADER_WHOLE; /* LOCAL: the rest is ignored, also an unknown family */
}

/* --- both --------------------------------------------------------------------------------- */

/* Do the bytes, or as many as there are, equal the signature? */
static bool begins_as(
	const uint8_t *data, size_t length, const void *signature, size_t signature_size)
{
	return memcmp(data, signature, length < signature_size ? length : signature_size) == 0;
}

enum proxy_header_result proxy_header_read(
	const uint8_t *data, size_t length, struct proxy_header *out)
{
	const bool line = begins_as(data, length, line_signature, LINE_SIGNATURE_SIZE);
	const size_t signature = line ? LINE_SIGNATURE_SIZE : sizeof(binary_signature);

	*out = (struct proxy_header){.client = {.family = AF_UNSPEC}};
	if (!line && !begins_as(data, length, binary_signature, signature))
		return PROXY_HEADER_NONE;
	if (length < signature)
		return PROXY_HEADER_UNCLEAR;
	return line ? read_line(data, length, out) : read_binary(data, length, out);
}
