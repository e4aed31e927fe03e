/* SPDX-License-Identifier: ISC */
/*
 * Makes the TLS contexts for clients, for servers and for the HTTP endpoint from the settings. The contexts are in the
 * process, not in the configuration: a RELOAD reads the files again even if no setting has
 * changed, and keeps the old contexts if new ones cannot be made.
 */
#ifndef PGUSHER_SESSION_LINK_TLS_SETUP_H
#define PGUSHER_SESSION_LINK_TLS_SETUP_H

#include "config/file_list.h"
#include "model/registry.h"

/*
 * Returns whether contexts can be made from these settings; if not, `why`, of `size` bytes, is
 * set to the error. The files for servers are not read: they may never be needed.
 */
bool tls_setup_check(const struct settings *settings, char *why, size_t size);

/* As tls_setup_check(), for the context for servers, with its files. */
bool tls_setup_check_servers(const struct settings *settings, char *why, size_t size);

/*
 * Add the files that contexts are made from to the list, before they are made. Files of a side
 * without TLS are not read, and not added.
 */
void tls_setup_note_files(const struct settings *settings, struct file_list *files);

/*
 * Make contexts from the settings in force and replace the old ones. They are used for new
 * handshakes only. Returns false when one of them cannot be made: the error is logged, and the
 * old contexts stay.
 */
bool tls_setup_apply(struct registry *registry);

/*
 * As tls_setup_apply(), for the start of the process: an error in the files for servers is
 * logged, but is no failure.
 */
bool tls_setup_start(struct registry *registry);

/*
 * Returns the context for connections to servers, which belongs to the process; it is made if
 * there is none yet. Returns NULL when it cannot be made at present; the error is logged. Not
 * to be called when server_tls_sslmode is `disable`. Any worker may call it.
 */
struct tls_context *tls_setup_towards_servers(struct registry *registry);

#endif
