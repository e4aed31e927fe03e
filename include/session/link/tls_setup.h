/* SPDX-License-Identifier: ISC */
/*
 * From settings to TLS contexts, for both sides. They stand beside the configuration, not in it: a
 * RELOAD reads the files anew even if no setting has changed, and keeps the old contexts if the new
 * ones cannot be made.
 */
#ifndef PGUSHER_SESSION_LINK_TLS_SETUP_H
#define PGUSHER_SESSION_LINK_TLS_SETUP_H

#include "model/registry.h"

/*
 * Would these settings make contexts? False: `why` says what is wrong. The files that are for
 * servers are not looked at: they may never be needed.
 */
bool tls_setup_check(const struct settings *settings, char *why, size_t size);

/* The same for the files that are for servers. */
bool tls_setup_check_servers(const struct settings *settings, char *why, size_t size);

/*
 * Make contexts from the settings in force and put them in the place of the old ones. False: one
 * of them cannot be made, both old ones stay, and the log says why. New handshakes only.
 */
bool tls_setup_apply(struct registry *registry);

/* At start: as tls_setup_apply(), but files for servers that are not there are only logged. */
bool tls_setup_start(struct registry *registry);

/*
 * The context for connections to servers; NULL: it cannot be made at present, and the log says
 * why. Not to be asked when server_tls_sslmode is `disable`.
 */
struct tls_context *tls_setup_towards_servers(struct registry *registry);

#endif
