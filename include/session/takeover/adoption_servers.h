/* SPDX-License-Identifier: ISC */
/* Adopts servers (takeover/adoption) in the state that they had in the other process. */
#ifndef PGUSHER_SESSION_TAKEOVER_ADOPTION_SERVERS_H
#define PGUSHER_SESSION_TAKEOVER_ADOPTION_SERVERS_H

#include "session/takeover/link_record.h"

struct adoption;

/*
 * Rebuild one server. The descriptor is taken over; it is closed if the server cannot be
 * rebuilt.
 */
void adoption_servers_take(struct adoption *adoption, const struct link_record *record, int fd);

#endif
