/* SPDX-License-Identifier: ISC */
/*
 * The process at the other end of a Unix socket, according to the kernel (SO_PEERCRED,
 * unix(7)).
 */
#ifndef PGUSHER_SESSION_LINK_PEER_CREDENTIALS_H
#define PGUSHER_SESSION_LINK_PEER_CREDENTIALS_H

#include <sys/socket.h>

#include "model/client_link.h"

/*
 * Read the credentials of the client's process. When the kernel does not report them, or only
 * those of a proxy, the uid is (uid_t)-1, which no user has.
 */
void peer_credentials_read(const struct client_link *client, struct ucred *peer);

#endif
