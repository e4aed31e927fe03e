/* SPDX-License-Identifier: ISC */
/*
 * The header of the PROXY protocol: its parser stays inside the bytes, and finds the same header
 * whether its bytes come at once or in parts. Mistakes do not go away with more bytes.
 */
#include <stdlib.h>

#include "net/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_whole(const struct proxy_header *header, size_t available)
{
	char text[ADDRESS_TEXT_SIZE];

	require(header->size > 0 && header->size <= available);
	require(header->size <= PROXY_HEADER_MAX);
	require(header->relayed || header->client.family == AF_UNSPEC);
	require(header->client.family == AF_UNSPEC || header->client.family == AF_INET ||
		header->client.family == AF_INET6);
	address_text(&header->client, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct proxy_header at_once, part;
	const enum proxy_header_result result = proxy_header_read(data, size, &at_once);
	size_t most = size < PROXY_HEADER_MAX ? size : PROXY_HEADER_MAX;

	if (result == PROXY_HEADER_WHOLE) {
		check_whole(&at_once, size);
		most = at_once.size - 1;
	}
	require(result != PROXY_HEADER_INCOMPLETE || size < PROXY_HEADER_MAX);
	require(result != PROXY_HEADER_MALFORMED || at_once.fault);
	for (size_t length = 0; length < most; length++) {
		const enum proxy_header_result before = proxy_header_read(data, length, &part);

		require(before != PROXY_HEADER_WHOLE);
		if (before == PROXY_HEADER_NONE || before == PROXY_HEADER_MALFORMED) {
			require(before == result);
			break;
		}
	}
	return 0;
}
