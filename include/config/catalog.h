/* SPDX-License-Identifier: ISC */
/*
 * The named entries of a configuration: databases, users, peers. Used by config/snapshot only:
 * a snapshot made by SET shares them with the one before. Reference-counted.
 */
#ifndef PGUSHER_CONFIG_CATALOG_H
#define PGUSHER_CONFIG_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/references.h"
#include "config/database_config.h"
#include "config/peer_config.h"
#include "config/user_config.h"

struct named;

typedef void entry_free(void *entry);

/* A list that owns its entries; each is found by a name inside it. */
struct named_list {
	struct named *at; /* sorted by name after named_list_sort() */
	size_t count, capacity;
	entry_free *free;
};

/*
 * Add an entry and take ownership. Returns false when out of memory; then the entry is freed.
 */
bool named_list_add(struct named_list *list, const char *name, void *entry);

/* Sort by name and keep the last of equal names. Required before any lookup. */
void named_list_sort(struct named_list *list);

/* The entry of this name, or at this index in sorted order; NULL: none. Owned by the list. */
const void *named_list_find(const struct named_list *list, const char *name);
const void *named_list_entry(const struct named_list *list, size_t index);

struct catalog {
	reference_count references;
	struct named_list databases, users, peers;
	struct database_config *template;
};

/* Returns an empty catalog with one reference, owned by the caller; NULL when out of memory. */
struct catalog *catalog_new(void);

struct catalog *catalog_ref(struct catalog *catalog);

/* Release a reference; the last one frees the catalog. NULL is allowed. */
void catalog_unref(struct catalog *catalog);

#endif
