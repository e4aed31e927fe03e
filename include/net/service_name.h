/* SPDX-License-Identifier: ISC */
/*
 * The name of a service whose addresses are found by DNS: `dns:NAME` or `dns:NAME:PORT`.
 */
#ifndef PGUSHER_NET_SERVICE_NAME_H
#define PGUSHER_NET_SERVICE_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "net/resolver.h"

struct service_name {
	char host[RESOLVER_NAME_MAX + 1];
	uint16_t port; /* 0: none is given */
};

/* Returns false if the text has another form, or its port is not one from 1 to 65535. */
bool service_name_read(const char *text, struct service_name *out);

#endif
