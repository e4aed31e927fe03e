/* SPDX-License-Identifier: ISC */
/*
 * The admin console: a client whose server is us.
 *
 * A client that has logged in to the console's database is handed over by the session floor
 * through registry.process->console. From then on its messages are gathered whole, and its commands run
 * at the end of the turn, one after the other, so that a SHOW is of now. One with many rows goes on
 * in the turns that follow (admin/show/telling), and what its client has said behind it waits. A console
 * that does not read its answers is neither read nor answered any further.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_CONSOLE_H
#define PGUSHER_ADMIN_CONSOLE_CONSOLE_H

#include "model/registry.h"

/* For registry.process->console, set before anybody can log in. */
extern const struct console_hooks console_hooks;

/*
 * Answer consoles whose PAUSE or WAIT_CLOSE is over, one way or the other: after servers were
 * released or closed, and after a pause was ended by other means than the console. Costs nothing
 * while none waits.
 */
void console_tick(struct registry *registry);

/* What consoles have asked while nothing could move. */
void console_resume(struct registry *registry);

#endif
