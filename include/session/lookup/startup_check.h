/* SPDX-License-Identifier: ISC */
/*
 * Checks the startup parameters of a client on a server before the login succeeds. So a login
 * with an invalid value fails, as with PostgreSQL, and valid values are reported as the server
 * spells them.
 *
 * A server of the client's pool sets the values for one transaction only
 * (lookup/startup_query). The pool caches values that were accepted. Values that equal the
 * pool's welcome are not checked, and neither are clients of replication, or any client with
 * startup_parameters=strict.
 */
#ifndef PGUSHER_SESSION_LOOKUP_STARTUP_CHECK_H
#define PGUSHER_SESSION_LOOKUP_STARTUP_CHECK_H

#include "model/registry.h"

/*
 * Check the parameters of an AUTHENTICATING or WELCOMING client; its pool must have a welcome.
 * Returns true if they are valid, and the login can go on. Returns false if the client was
 * closed, or is LOOKING_UP and continues with login_steps.checked.
 */
bool startup_check_begin(struct client_link *client);

#endif
