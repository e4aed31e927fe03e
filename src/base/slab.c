/* SPDX-License-Identifier: ISC */
/*
 * Pages of objects, each page aligned to its size, so that masking an object's address gives
 * the head of its page.
 *
 * A page with all objects used is in no list. A page with some used objects is in the list of
 * its class, by the number of used objects; objects are taken from the fullest class, so that
 * the emptiest pages become empty. A page with no used object becomes the spare or is returned
 * to the system.
 */
#include "base/slab.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLAB_PLAIN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLAB_PLAIN
#endif
#endif

enum { OBJECT_ALIGNMENT = 8 };

#ifdef SLAB_PLAIN

static size_t capacity_of_page(size_t object_size)
{
	(void)object_size;
	return 0;
}

void *slab_take(struct slab *slab)
{
	void *object = calloc(1, slab->object_size);

	if (object != NULL)
		slab->used++;
	return object;
}

void slab_give(struct slab *slab, void *object)
{
	if (object == NULL)
		return;
	free(object);
	slab->used--;
}

void slab_trim(struct slab *slab)
{
	(void)slab;
}

#else

struct free_object {
	struct free_object *next;
};

struct slab_page {
	LIST_ENTRY(slab_page) neighbours; /* in the list of its class */
	struct slab *slab;
	/* Most recently given back first: it is likely still in the CPU cache. */
	struct free_object *given_back;
	uint32_t used; /* objects in use */
	uint32_t touched; /* objects ever taken; memory after them was never written to */
};

/* Objects start after the head, on a new cache line. */
enum { HEAD_SIZE = 64 };
_Static_assert(sizeof(struct slab_page) <= HEAD_SIZE, "the head must fit");

static size_t capacity_of_page(size_t object_size)
{
	return (SLAB_PAGE_SIZE - HEAD_SIZE) / object_size;
}

static struct slab_page *page_of(void *object)
{
	return (struct slab_page *)((uintptr_t)object & ~((uintptr_t)SLAB_PAGE_SIZE - 1));
}

static void *map(size_t size)
{
	void *memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/*
 * Not aligned_alloc(): it leaves gaps in the heap, and memory freed in the middle of the heap
 * is not returned to the system. Linux places mappings next to each other, so most are aligned
 * at once.
 */
static void *map_aligned(void)
{
	char *memory = map(SLAB_PAGE_SIZE);
	size_t before;

	if (memory == NULL || (uintptr_t)memory % SLAB_PAGE_SIZE == 0)
		return memory;
	(void)munmap(memory, SLAB_PAGE_SIZE);

	memory = map((size_t)2 * SLAB_PAGE_SIZE);
	if (memory == NULL)
		return NULL;
	before = SLAB_PAGE_SIZE - (uintptr_t)memory % SLAB_PAGE_SIZE;
	(void)munmap(memory, before % SLAB_PAGE_SIZE);
	memory += before % SLAB_PAGE_SIZE;
	(void)munmap(memory + SLAB_PAGE_SIZE, SLAB_PAGE_SIZE - before % SLAB_PAGE_SIZE);
	return memory;
}

static struct slab_page *page_new(struct slab *slab)
{
	struct slab_page *page = map_aligned();

	if (page == NULL)
		return NULL;
	page->slab = slab;
	slab->pages++;
	slab->free += slab->page_capacity;
	return page;
}

static void page_free(struct slab *slab, struct slab_page *page)
{
	slab->pages--;
	slab->free -= slab->page_capacity;
	(void)munmap(page, SLAB_PAGE_SIZE);
}

/* The list for a page with this many used objects; NULL for none and for all. */
static struct slab_pages *list_of(struct slab *slab, uint32_t used)
{
	if (used == 0 || used == slab->page_capacity)
		return NULL;
	return &slab->roomy[(size_t)used * SLAB_CLASSES / slab->page_capacity];
}

static void set_used(struct slab *slab, struct slab_page *page, uint32_t used)
{
	struct slab_pages *from = list_of(slab, page->used);
	struct slab_pages *to = list_of(slab, used);

	page->used = used;
	if (from == to)
		return;
	if (from != NULL)
		LIST_REMOVE(page, neighbours);
	if (to != NULL)
		LIST_INSERT_HEAD(to, page, neighbours);
}

static struct slab_page *page_with_room(struct slab *slab)
{
	struct slab_page *page;

	for (int class = SLAB_CLASSES - 1; class >= 0; class --) {
		page = LIST_FIRST(&slab->roomy[class]);
		if (page != NULL)
			return page;
	}
	page = slab->spare;
	slab->spare = NULL;
	return page != NULL ? page : page_new(slab);
}

void *slab_take(struct slab *slab)
{
	struct slab_page *page = page_with_room(slab);
	void *object;

	if (page == NULL)
		return NULL;
	if (page->given_back != NULL) {
		object = page->given_back;
		page->given_back = page->given_back->next;
		memset(object, 0, slab->object_size);
	} else {
		/* Fresh from the system, so zero already. */
		object = (char *)page + HEAD_SIZE + page->touched * slab->object_size;
		page->touched++;
	}
	set_used(slab, page, page->used + 1);
	slab->used++;
	slab->free--;
	return object;
}

void slab_give(struct slab *slab, void *object)
{
	struct slab_page *page = page_of(object);
	struct free_object *given = object;

	if (object == NULL)
		return;
	CHECK(page->slab == slab && page->used > 0);
	given->next = page->given_back;
	page->given_back = given;
	set_used(slab, page, page->used - 1);
	slab->used--;
	slab->free++;

	if (page->used > 0)
		return;
	if (slab->spare == NULL)
		slab->spare = page;
	else
		page_free(slab, page);
}

void slab_trim(struct slab *slab)
{
	if (slab->spare == NULL)
		return;
	page_free(slab, slab->spare);
	slab->spare = NULL;
}

#endif

void slab_init(struct slab *slab, const char *name, size_t object_size)
{
	CHECK(object_size > 0 && object_size <= SLAB_MAX_OBJECT);
	memset(slab, 0, sizeof(*slab));
	slab->name = name;
	slab->object_size =
		(object_size + OBJECT_ALIGNMENT - 1) / OBJECT_ALIGNMENT * OBJECT_ALIGNMENT;
	slab->page_capacity = capacity_of_page(slab->object_size);
}

void slab_destroy(struct slab *slab)
{
	CHECK(slab->used == 0);
	slab_trim(slab);
}
