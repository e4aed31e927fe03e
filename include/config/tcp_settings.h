/* SPDX-License-Identifier: ISC */
/* The TCP options that the main section sets, for listening sockets and for servers alike. */
#ifndef PGUSHER_CONFIG_TCP_SETTINGS_H
#define PGUSHER_CONFIG_TCP_SETTINGS_H

#include "config/settings.h"
#include "net/tcp_options.h"

/* Returns the socket options that these settings ask for; the result holds no pointers. */
struct tcp_options tcp_settings_options(const struct settings *settings);

#endif
