/* SPDX-License-Identifier: ISC */
/*
 * A handle has the slot's number in its lower half and a serial number in its upper half, so
 * that successive objects in one slot have different handles.
 */
#include "base/handles.h"

#include <stdbool.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 64 };

static uint32_t slot_of(uint64_t handle)
{
	return (uint32_t)handle;
}

static bool grow(struct handles *handles)
{
	const uint32_t capacity = handles->capacity ? 2 * handles->capacity : FIRST_CAPACITY;
	struct handle_slot *slots;
	uint32_t *vacant;

	if (capacity < handles->capacity)
		return false;
	slots = realloc(handles->slots, capacity * sizeof(*slots));
	if (slots)
		handles->slots = slots;
	vacant = realloc(handles->vacant, capacity * sizeof(*vacant));
	if (vacant)
		handles->vacant = vacant;
	if (!slots || !vacant)
		return false;
	handles->capacity = capacity;
	return true;
}

void handles_init(struct handles *handles)
{
	*handles = (struct handles){.serial = 0};
	(void)pthread_mutex_init(&handles->lock, NULL);
}

/* --- with the lock held ------------------------------------------------------------------- */

static void *find(const struct handles *handles, uint64_t handle)
{
	const uint32_t slot = slot_of(handle);

	return slot < handles->count && handles->slots[slot].handle == handle
		? handles->slots[slot].object
		: NULL;
}

/*
 * Whether the stored handle belongs to this object: a handle assigned before handles_clear()
 * may equal another object's.
 */
static bool is_its_own(const struct handles *handles, uint64_t handle, const void *object)
{
	return handle != 0 && find(handles, handle) == object;
}

static uint64_t give(struct handles *handles, uint64_t *of, void *object)
{
	uint32_t slot;

	if (is_its_own(handles, *of, object))
		return *of;
	if (handles->vacancies > 0)
		slot = handles->vacant[--handles->vacancies];
	else if (handles->count < handles->capacity || grow(handles))
		slot = handles->count++;
	else
		return 0;
	handles->serial += handles->serial == UINT32_MAX ? 2 : 1; /* never 0 */
	*of = (uint64_t)handles->serial << 32 | slot;
	handles->slots[slot] = (struct handle_slot){*of, object};
	return *of;
}

static void take_back(struct handles *handles, uint64_t handle, const void *object)
{
	if (!is_its_own(handles, handle, object))
		return;
	handles->slots[slot_of(handle)] = (struct handle_slot){0};
	handles->vacant[handles->vacancies++] = slot_of(handle);
}

static void clear(struct handles *handles)
{
	free(handles->slots);
	free(handles->vacant);
	handles->slots = NULL;
	handles->vacant = NULL;
	handles->count = handles->capacity = handles->vacancies = 0;
}

/* --- for any thread ----------------------------------------------------------------------- */

uint64_t handles_give(struct handles *handles, uint64_t *of, void *object)
{
	uint64_t handle;

	(void)pthread_mutex_lock(&handles->lock);
	handle = give(handles, of, object);
	(void)pthread_mutex_unlock(&handles->lock);
	return handle;
}

void handles_take_back(struct handles *handles, const uint64_t *of, const void *object)
{
	if (*of == 0)
		return;
	(void)pthread_mutex_lock(&handles->lock);
	take_back(handles, *of, object);
	(void)pthread_mutex_unlock(&handles->lock);
}

void *handles_find(struct handles *handles, uint64_t handle)
{
	void *object;

	(void)pthread_mutex_lock(&handles->lock);
	object = find(handles, handle);
	(void)pthread_mutex_unlock(&handles->lock);
	return object;
}

void handles_clear(struct handles *handles)
{
	(void)pthread_mutex_lock(&handles->lock);
	clear(handles);
	(void)pthread_mutex_unlock(&handles->lock);
}

void handles_free(struct handles *handles)
{
	clear(handles);
	(void)pthread_mutex_destroy(&handles->lock);
}
