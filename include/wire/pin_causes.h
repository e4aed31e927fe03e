/* SPDX-License-Identifier: ISC */
/*
 * The names of what keeps a server with its client: `temporary object`, `advisory lock`, ... in
 * pin_causes, SHOW PINS, metrics and messages.
 */
#ifndef PGUSHER_WIRE_PIN_CAUSES_H
#define PGUSHER_WIRE_PIN_CAUSES_H

#include <stdbool.h>

#include "wire/session_topics.h"

/* The setting allows these names, for a message. */
#define PIN_CAUSES_ALLOWED                                                                     \
	"a list, separated by commas, of: temporary object, advisory lock, cursor with hold, " \
	"prepared statement, listen, load, sequence value"

/* Returns the lowest of these topics that is a cause. 0: none. */
session_topics pin_causes_first(session_topics topics);

/* Returns the name of that one; `none`. Static memory. */
const char *pin_causes_name(session_topics topics);

/*
 * Read a list of names, in any letter case; an empty one has none. Returns false, and sets nothing, if
 * it has another name.
 */
bool pin_causes_read(const char *list, session_topics *out);

#endif
