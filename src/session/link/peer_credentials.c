/* SPDX-License-Identifier: ISC */
#include "session/link/peer_credentials.h"

void peer_credentials_read(const struct client_link *client, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);

	if (client->proxy == PROXY_RELAYED ||
		getsockopt(client->link.stream.fd, SOL_SOCKET, SO_PEERCRED, peer, &length) != 0)
		*peer = (struct ucred){.pid = 0, .uid = (uid_t)-1};
}
