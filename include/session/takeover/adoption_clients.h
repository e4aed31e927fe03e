/* SPDX-License-Identifier: ISC */
/* The clients of an adoption (session/takeover/adoption): each as the other process left it. */
#ifndef PGUSHER_SESSION_TAKEOVER_ADOPTION_CLIENTS_H
#define PGUSHER_SESSION_TAKEOVER_ADOPTION_CLIENTS_H

#include "session/takeover/link_record.h"

struct adoption;

/* The descriptor is taken over: what cannot be rebuilt is closed. */
void adoption_clients_take(struct adoption *adoption, const struct link_record *record, int fd);

#endif
