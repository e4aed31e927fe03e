/* SPDX-License-Identifier: ISC */
/*
 * What commands ask of the daemon, which is a floor above the console. The daemon sets
 * process.actions before it listens; all functions are called on the event loop's thread.
 */
#ifndef PGUSHER_ADMIN_CONSOLE_ACTIONS_H
#define PGUSHER_ADMIN_CONSOLE_ACTIONS_H

#include "model/registry.h"

/* Room for the report of a reload. */
enum { ACTION_REPORT_SIZE = 768 };

struct actions {
	/*
	 * Load the configuration again. Returns false if that failed; the old configuration
	 * then stays in force. `report` gets what was done in words, if something has changed or
	 * it has taken long, else "".
	 */
	bool (*reload)(struct registry *registry, char *report, size_t size);
	/*
	 * Give a setting another value until the next reload. Returns true, without effect, for
	 * a setting that cannot change at run time; false if the setting is unknown or the
	 * value is not valid. `why` gets a text for the log, or "".
	 */
	bool (*set)(struct registry *registry, const char *key, const char *value, char *why,
		size_t size);
	/* Shut down, at once (`now`) or as the mode says. If at once, nothing more is sent. */
	void (*shutdown)(struct registry *registry, enum shutdown_mode mode, bool now);
	/*
	 * Takeover: hand connections over to the process that asks on this console, and, later,
	 * commit. Both return NULL or the text of an error. `hand_over` answers the console
	 * later; after `commit` there is no answer.
	 */
	const char *(*hand_over)(struct registry *registry, struct client_link *console);
	const char *(*commit)(struct registry *registry, struct client_link *console);
};

#endif
