/* SPDX-License-Identifier: ISC */
/*
 * --health: asks the pooler of a configuration whether it accepts clients, as pg_isready does, and
 * with the same exit statuses. It needs no password: a request to authenticate is the answer that
 * counts, and the connection ends there.
 *
 * It asks at the addresses that the configuration listens on, and at the Unix socket if none of
 * them answers, for three seconds in all. A pooler that should listen on addresses and answers at
 * its socket only is about to shut down.
 */
#ifndef PGUSHER_DAEMON_MODES_HEALTH_H
#define PGUSHER_DAEMON_MODES_HEALTH_H

#include "daemon/options.h"

/* As the exit status of pg_isready. */
enum health {
	HEALTH_ACCEPTS,
	HEALTH_REJECTS, /* it answers that it does not accept clients: it is shutting down */
	HEALTH_NO_ANSWER,
	HEALTH_NOT_ASKED, /* there is no configuration to go by */
};

/*
 * Ask, and print one line to stdout. The configuration is that of a file, or of --listen alone.
 */
enum health health_ask(const struct options *options);

#endif
