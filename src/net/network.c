/* SPDX-License-Identifier: ISC */
#include "net/network.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static size_t size_of(uint8_t family)
{
	return family == AF_INET ? 4 : 16;
}

static bool parse_address(const char *text, uint8_t *family, uint8_t bytes[16])
{
	if (inet_pton(AF_INET, text, bytes) == 1)
		*family = AF_INET;
	else if (inet_pton(AF_INET6, text, bytes) == 1)
		*family = AF_INET6;
	else
		return false;
	return true;
}

/* One to three decimal digits. */
static bool parse_bits(const char *text, unsigned *out)
{
	unsigned bits = 0;
	size_t length = 0;

	for (; text[length] >= '0' && text[length] <= '9' && length < 3; length++)
		bits = bits * 10 + (unsigned)(text[length] - '0');
	*out = bits;
	return length > 0 && text[length] == '\0';
}

static void set_bits(uint8_t mask[16], unsigned bits)
{
	memset(mask, 0, 16);
	for (unsigned i = 0; i < bits; i++)
		mask[i / 8] |= (uint8_t)(0x80 >> i % 8);
}

bool network_parse(const char *text, struct network *out)
{
	const char *slash = strchr(text, '/');
	const size_t length = slash ? (size_t)(slash - text) : 0;
	struct network network = {0};
	char address[INET6_ADDRSTRLEN];
	unsigned bits;

	if (!slash || length >= sizeof(address) || !parse_bits(slash + 1, &bits))
		return false;
	memcpy(address, text, length);
	address[length] = '\0';
	if (!parse_address(address, &network.family, network.bytes) ||
		bits > 8 * size_of(network.family))
		return false;
	set_bits(network.mask, bits);
	*out = network;
	return true;
}

bool network_parse_any(const char *text, struct network *out)
{
	struct network network = {0};

	if (strchr(text, '/'))
		return network_parse(text, out);
	if (!parse_address(text, &network.family, network.bytes))
		return false;
	set_bits(network.mask, 8 * (unsigned)size_of(network.family));
	*out = network;
	return true;
}

bool network_parse_masked(const char *address, const char *mask, struct network *out)
{
	struct network network = {0};
	uint8_t family;

	if (!parse_address(address, &network.family, network.bytes) ||
		!parse_address(mask, &family, network.mask) || family != network.family)
		return false;
	*out = network;
	return true;
}

bool network_has(const struct network *network, const struct address *address)
{
	if (address->family != network->family)
		return false;
	for (size_t i = 0; i < size_of(network->family); i++) {
		if ((address->bytes[i] & network->mask[i]) != network->bytes[i])
			return false;
	}
	return true;
}

bool network_is_empty(const struct network *network)
{
	for (size_t i = 0; i < size_of(network->family); i++) {
		if (network->bytes[i] & ~network->mask[i])
			return true;
	}
	return false;
}

bool network_is_everything(const struct network *network)
{
	static const uint8_t none[sizeof(network->mask)];

	return memcmp(network->mask, none, size_of(network->family)) == 0;
}

const char *network_text(const struct network *network, char out[ADDRESS_TEXT_SIZE])
{
	char address[INET6_ADDRSTRLEN] = "", mask[INET6_ADDRSTRLEN] = "";

	inet_ntop(network->family, network->bytes, address, sizeof(address));
	inet_ntop(network->family, network->mask, mask, sizeof(mask));
	snprintf(out, ADDRESS_TEXT_SIZE, "%s / %s", address, mask);
	return out;
}

/* --- lists -------------------------------------------------------------------------------- */

bool network_list_next(const char **cursor, struct network *out, bool *good)
{
	struct network network = {.family = AF_UNIX};
	char text[INET6_ADDRSTRLEN + sizeof("/128")];
	bool whole;

	if (!text_next_item(cursor, TEXT_LIST_SEPARATORS, text, sizeof(text), &whole))
		return false;
	*good = whole &&
		(strcmp(text, "unix") == 0 ||
			(network_parse_any(text, &network) && !network_is_empty(&network)));
	if (*good)
		*out = network;
	return true;
}

/* Write the good items of the text, if there is memory for them, and return their number. */
static unsigned collect(struct network *into, const char *text)
{
	struct network network;
	unsigned count = 0;
	bool good;

	while (network_list_next(&text, &network, &good)) {
		if (good && into)
			into[count] = network;
		count += good;
	}
	return count;
}

bool network_list_read(struct network_list *list, const char *text)
{
	const unsigned count = collect(NULL, text);

	network_list_free(list);
	if (count == 0)
		return true;
	list->networks = calloc(count, sizeof(*list->networks));
	if (!list->networks)
		return false;
	list->count = collect(list->networks, text);
	return true;
}

bool network_list_has(const struct network_list *list, const struct address *address)
{
	for (unsigned i = 0; i < list->count; i++) {
		if (network_has(&list->networks[i], address))
			return true;
	}
	return false;
}

void network_list_free(struct network_list *list)
{
	free(list->networks);
	*list = (struct network_list){0};
}
