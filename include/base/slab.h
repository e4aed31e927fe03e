/* SPDX-License-Identifier: ISC */
/*
 * A cache of objects of one size, counted for SHOW MEM.
 *
 * Objects stand without a header in pages of 64 kB and find their page by their address. A new
 * object goes to one of the fullest pages with room, so that after a burst pages become empty,
 * and empty pages go back to the system, all but one. A page touches memory only as objects are
 * first taken from it.
 *
 * A slab belongs to one loop and is not locked. Under AddressSanitizer each object is an
 * allocation of its own, so that a use after slab_give() is seen; `free` and `pages` are then
 * 0.
 */
#ifndef PGUSHER_BASE_SLAB_H
#define PGUSHER_BASE_SLAB_H

#include <bsd/sys/queue.h>
#include <stddef.h>

enum {
	SLAB_PAGE_SIZE = 64 * 1024,
	SLAB_MAX_OBJECT = 8 * 1024,
	/* Pages with room stand in lists by how full they are. */
	SLAB_CLASSES = 8,
};

struct slab_page;

LIST_HEAD(slab_pages, slab_page);

struct slab {
	const char *name; /* as SHOW MEM has it; not copied */
	size_t object_size; /* rounded up to a multiple of 8, the alignment of objects */
	size_t used; /* objects taken and not given back */
	size_t free; /* objects that the pages at hand could still give */
	size_t pages; /* pages at hand */
	size_t page_capacity; /* objects in a page */
	struct slab_pages roomy[SLAB_CLASSES]; /* pages with some objects used and some free */
	struct slab_page *spare; /* one page whose objects are all free, or NULL */
};

/* An empty slab for objects of this size, at most SLAB_MAX_OBJECT; takes no memory yet. */
void slab_init(struct slab *slab, const char *name, size_t object_size);

/* An object of zeros, owned by the caller until slab_give(); NULL: no memory. */
void *slab_take(struct slab *slab);

/* Give back an object of this very slab; NULL is nothing. Its content is not wiped at once. */
void slab_give(struct slab *slab, void *object);

/* Give the spare page to the system too. */
void slab_trim(struct slab *slab);

/* All objects must have been given back. */
void slab_destroy(struct slab *slab);

#endif
