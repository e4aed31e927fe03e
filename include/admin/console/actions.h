/* SPDX-License-Identifier: ISC */
/*
 * What the console asks for and only the daemon can do. The daemon hangs a filled-in table on
 * registry.process->actions before it listens; all functions are called on the loop's thread.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_ACTIONS_H
#define PGUSHER_ADMIN_CONSOLE_ACTIONS_H

#include "model/registry.h"

struct actions {
	/* Read the configuration anew; false, and the old one in force, when something failed. */
	bool (*reload)(struct registry *registry);
	/*
	 * Give a setting another value until the next reload. True as well, without effect, for one
	 * that cannot change at run time. False: unknown, or no such value; `why` is for the log.
	 */
	bool (*set)(struct registry *registry, const char *key, const char *value, char *why,
		size_t size);
	/* Stop: `now`, or as the mode says. Nothing more is sent to anybody if it is now. */
	void (*shutdown)(struct registry *registry, enum shutdown_mode mode, bool now);
	/*
	 * Hand over to the process that asks for it on this console, or, at last, let go. NULL, or
	 * why not. A handover that has begun is answered later, one that is committed has been.
	 */
	const char *(*hand_over)(struct registry *registry, struct client_link *console);
	const char *(*commit)(struct registry *registry, struct client_link *console);
};

#endif
