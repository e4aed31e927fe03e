/* SPDX-License-Identifier: ISC */
#include "net/service_name.h"

#include <string.h>

#include "base/text.h"

static bool is_host(const char *text, size_t length)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	return length > 0 && length <= RESOLVER_NAME_MAX && strspn(text, allowed) >= length;
}

bool service_name_read(const char *text, struct service_name *out)
{
	static const char prefix[] = "dns:";
	const char *name = text + strlen(prefix);
	long long port = 0;
	size_t length;

	if (strncmp(text, prefix, strlen(prefix)) != 0)
		return false;
	length = strcspn(name, ":");
	if (name[length] == ':' &&
		(!text_to_integer(name + length + 1, &port) || port < 1 || port > UINT16_MAX))
		return false;
	if (!is_host(name, length))
		return false;
	memcpy(out->host, name, length);
	out->host[length] = '\0';
	out->port = (uint16_t)port;
	return true;
}
