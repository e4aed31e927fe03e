/* SPDX-License-Identifier: ISC */
/*
 * The admin console: a client that is served by pgusher itself, not by a PostgreSQL server.
 *
 * The session floor hands a client that logged in to the console's database over through
 * process.console. From then on whole messages are collected, and commands run one after the
 * other at the end of the turn, so that a SHOW has the state of that moment. A SHOW with many
 * rows continues in later turns (admin/show/show_stream); messages behind it wait. The console
 * neither reads from nor answers a client that does not read its answers.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_CONSOLE_H
#define PGUSHER_ADMIN_CONSOLE_CONSOLE_H

#include "model/registry.h"

/* For process.console, set before clients can log in. */
extern const struct console_hooks console_hooks;

/*
 * Answer the consoles that wait for a PAUSE, SUSPEND or WAIT_CLOSE that is over. To be called
 * after servers were released or closed and after a pause was ended by other means than the
 * console. Cheap while no console waits. May close clients.
 */
void console_tick(struct registry *registry);

/* Run the commands that consoles sent while connections were frozen. */
void console_resume(struct registry *registry);

#endif
