/* SPDX-License-Identifier: ISC */
/* The servers of an adoption (session/takeover/adoption): each as the other process left it. */
#ifndef PGUSHER_SESSION_TAKEOVER_ADOPTION_SERVERS_H
#define PGUSHER_SESSION_TAKEOVER_ADOPTION_SERVERS_H

#include "session/takeover/link_record.h"

struct adoption;

/* The descriptor is taken over: what cannot be rebuilt is closed. */
void adoption_servers_take(struct adoption *adoption, const struct link_record *record, int fd);

#endif
