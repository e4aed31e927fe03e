/* SPDX-License-Identifier: ISC */
/*
 * The first bytes of a client where proxies send a PROXY header (proxy_protocol): the header gives
 * the client its real address, and what follows is for login/client_greeting.
 *
 * A header is taken once, and only from an address of proxy_networks. Elsewhere, and behind
 * another one, it closes the connection as soon as it is recognised. At most PROXY_HEADER_MAX
 * bytes of an incomplete one are kept, until client_login_timeout.
 */
#ifndef PGUSHER_SESSION_LOGIN_PROXY_GREETING_H
#define PGUSHER_SESSION_LOGIN_PROXY_GREETING_H

#include "model/registry.h"

/* Handlers of the stream of a client while a header may come. */
extern const struct stream_handlers proxy_greeting_handlers;

/*
 * A client was accepted, and its address is set: look for a header in its first bytes. Only for
 * use when proxy_protocol is not off.
 */
void proxy_greeting_begin(struct client_link *client);

#endif
