/* SPDX-License-Identifier: ISC */
/* Peer authentication: the look-up of the system user that a login waits for. */
#ifndef PGUSHER_SESSION_AUTH_PEER_H
#define PGUSHER_SESSION_AUTH_PEER_H

struct name_lookup;

/* The login has ended: the result of its look-up is dropped. NULL is allowed. */
void peer_abandon(struct name_lookup *lookup);

#endif
