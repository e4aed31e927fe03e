/* SPDX-License-Identifier: ISC */
/*
 * The way out of a setting that servers refuse, such as a role that was dropped: the statement by
 * which a client replaces it.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_WAY_OUT_H
#define PGUSHER_SESSION_PARAMETERS_WAY_OUT_H

#include "model/client_link.h"
#include "wire/parameters.h"

/*
 * If the messages that the client holds begin with a plain SET, RESET, RESET ALL or DISCARD ALL (a
 * Query, or all of its messages from Parse or Bind to Execute), returns the parameters that the
 * client has after it, as a reference that the caller owns; they may be those that it has. Returns
 * NULL if they begin with something else, or when out of memory.
 */
struct parameters *way_out_of(const struct client_link *client);

#endif
