/* SPDX-License-Identifier: ISC */
/*
 * What follows when a server has refused our SETs, which were sent alone: see
 * parameters/parameter_sync.
 */
#ifndef PGUSHER_SESSION_SERVING_REFUSED_SETTING_H
#define PGUSHER_SESSION_SERVING_REFUSED_SETTING_H

#include "model/server_link.h"

/*
 * The SETs have ended on this server, which is paired and has refused one of them. If the client's
 * query replaces the setting, try what it has afterwards; else the query ends with the server's
 * error, and the server returns to its pool. May close both.
 */
void refused_setting_end(struct server_link *server);

#endif
