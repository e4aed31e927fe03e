/* SPDX-License-Identifier: ISC */
/*
 * Slab allocator: a cache of objects of one size, counted for SHOW MEM.
 *
 * Objects have no header. They are placed in pages of 64 kB aligned to their size, so an
 * object's address gives its page. A new object is taken from one of the fullest pages with
 * room, so that pages become empty after a burst; empty pages but one are returned to the
 * system. A page's memory is touched only as objects are first taken from it.
 *
 * A slab belongs to one loop and has no lock. Under AddressSanitizer each object is an
 * allocation of its own, so that a use after slab_give() is detected; `free` and `pages` are
 * then 0.
 */
#ifndef PGUSHER_BASE_SLAB_H
#define PGUSHER_BASE_SLAB_H

#include <bsd/sys/queue.h>
#include <stddef.h>

enum {
	SLAB_PAGE_SIZE = 64 * 1024,
	SLAB_MAX_OBJECT = 8 * 1024,
	/* Number of lists of pages with room, by how full they are. */
	SLAB_CLASSES = 8,
};

struct slab_page;

LIST_HEAD(slab_pages, slab_page);

struct slab {
	const char *name; /* as shown in SHOW MEM; not copied */
	size_t object_size; /* rounded up to a multiple of 8, the alignment of objects */
	size_t used; /* objects taken and not given back */
	size_t free; /* objects that the allocated pages can still give */
	size_t pages; /* pages allocated */
	size_t page_capacity; /* objects in a page */
	struct slab_pages roomy[SLAB_CLASSES]; /* pages with some objects used and some free */
	struct slab_page *spare; /* one page with all objects free, or NULL */
};

/* Make an empty slab for objects of this size, at most SLAB_MAX_OBJECT. Takes no memory yet. */
void slab_init(struct slab *slab, const char *name, size_t object_size);

/* Returns a zeroed object, owned by the caller until slab_give(); NULL when out of memory. */
void *slab_take(struct slab *slab);

/*
 * Give back an object of this same slab; does nothing for NULL. The content is not wiped at
 * once.
 */
void slab_give(struct slab *slab, void *object);

/* Return the spare page to the system too. */
void slab_trim(struct slab *slab);

/* Free the spare page. All objects must have been given back. */
void slab_destroy(struct slab *slab);

#endif
