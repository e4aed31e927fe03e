/* SPDX-License-Identifier: ISC */
/* One question of --health at one place, with blocking calls within a deadline. */
#ifndef PGUSHER_DAEMON_MODES_HEALTH_PROBE_H
#define PGUSHER_DAEMON_MODES_HEALTH_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "daemon/modes/health.h"

struct health_probe {
	struct sockaddr_storage address;
	socklen_t length;
	const char *user,
		*database; /* that the pooler knows, so that it logs nothing unusual */
	bool proxy_header; /* begin as a proxy does that connects for itself */
	bool tls; /* encrypt the connection */
	bool no_certificate; /* the pooler wants one: its answer to SSLRequest has to do */
	usec_t deadline; /* of the monotonic clock */
};

/*
 * Connect and ask. For HEALTH_REJECTS and HEALTH_NO_ANSWER `why` has the reason.
 */
enum health health_probe(const struct health_probe *probe, char *why, size_t size);

#endif
