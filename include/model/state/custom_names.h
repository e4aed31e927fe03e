/* SPDX-License-Identifier: ISC */
/*
 * The names of settings with a dot (`app.tenant`) that a client may have SET: the server has no
 * list of them, so it is asked for each by its name.
 */
#ifndef PGUSHER_MODEL_STATE_CUSTOM_NAMES_H
#define PGUSHER_MODEL_STATE_CUSTOM_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/suspicion.h"

struct client_link;

/*
 * Note the name that this text begins with, if it has a dot and is the name of a setting; blanks
 * and quotes before it are skipped. Returns false when it could not be noted, because memory is
 * short or the client has too many.
 */
bool custom_names_note(struct client_link *client, const char *text, size_t length);

/* Returns a note of names for wire/suspicion: they are noted for this client. */
struct suspicion_names custom_names_of(struct client_link *client);

/* Memory of the names of a client, each with its NUL; NULL: none. */
size_t custom_names_size(const char *names);

/* Free the names of a client that is closed. */
void custom_names_free(struct client_link *client);

#endif
