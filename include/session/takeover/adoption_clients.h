/* SPDX-License-Identifier: ISC */
/* Adopts clients (takeover/adoption) in the state that they had in the other process. */
#ifndef PGUSHER_SESSION_TAKEOVER_ADOPTION_CLIENTS_H
#define PGUSHER_SESSION_TAKEOVER_ADOPTION_CLIENTS_H

#include "session/takeover/link_record.h"

struct adoption;

/*
 * Rebuild one client. The descriptor is taken over; it is closed if the client cannot be
 * rebuilt.
 */
void adoption_clients_take(struct adoption *adoption, const struct link_record *record, int fd);

#endif
