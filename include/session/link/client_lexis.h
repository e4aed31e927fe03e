/* SPDX-License-Identifier: ISC */
/* What the meaning of SQL text depends on. */
#ifndef PGUSHER_SESSION_LINK_CLIENT_LEXIS_H
#define PGUSHER_SESSION_LINK_CLIENT_LEXIS_H

#include "model/client_link.h"
#include "wire/session_command.h"

/*
 * Returns how the server of the client reads its texts: by the client_encoding and
 * standard_conforming_strings of the client, which its server has or is given before. Statements in
 * flight may change both.
 */
struct session_lexis client_lexis(const struct client_link *client);

#endif
