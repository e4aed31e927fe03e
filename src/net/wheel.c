/* SPDX-License-Identifier: ISC */
#include "net/wheel.h"

static int64_t tick_of(usec_t when)
{
	/* Rounded up: a deadline never fires early. */
	return (when + WHEEL_TICK - 1) / WHEEL_TICK;
}

static unsigned slot_of(int64_t tick)
{
	return (unsigned)(tick & (WHEEL_SLOTS - 1));
}

void wheel_init(struct wheel *wheel, usec_t now)
{
	for (unsigned i = 0; i < WHEEL_SLOTS; i++)
		TAILQ_INIT(&wheel->slots[i]);
	for (unsigned i = 0; i < WHEEL_SLOTS / 64; i++)
		wheel->used[i] = 0;
	TAILQ_INIT(&wheel->exact);
	wheel->tick = now / WHEEL_TICK;
}

static void place(struct wheel *wheel, struct deadline *deadline)
{
	int64_t tick = tick_of(deadline->due);

	if (tick <= wheel->tick)
		tick = wheel->tick + 1;
	/*
	 * A deadline beyond the span of the wheel waits in its last slot, to be placed again.
	 */
	if (tick >= wheel->tick + WHEEL_SLOTS)
		tick = wheel->tick + WHEEL_SLOTS - 1;
	deadline->tick = tick;
	TAILQ_INSERT_TAIL(&wheel->slots[slot_of(tick)], deadline, entry);
	wheel->used[slot_of(tick) / 64] |= UINT64_C(1) << (slot_of(tick) % 64);
}

/* Remove the deadline from its slot, or from the list of exact ones. */
static void take_out(struct wheel *wheel, struct deadline *deadline)
{
	if (deadline->tick > 0)
		TAILQ_REMOVE(&wheel->slots[slot_of(deadline->tick)], deadline, entry);
	else if (deadline->tick == WHEEL_EXACT)
		TAILQ_REMOVE(&wheel->exact, deadline, entry);
	deadline->tick = 0;
}

void wheel_set(struct wheel *wheel, struct deadline *deadline, usec_t due)
{
	deadline->due = due;
	if (due == 0)
		return;
	if (deadline->tick > 0 && deadline->tick <= tick_of(due))
		return;
	take_out(wheel, deadline);
	place(wheel, deadline);
}

void wheel_set_exact(struct wheel *wheel, struct deadline *deadline, usec_t due)
{
	struct deadline *before;

	take_out(wheel, deadline);
	deadline->due = due;
	if (due == 0)
		return;
	before = TAILQ_LAST(&wheel->exact, deadline_list);
	while (before && before->due > due)
		before = TAILQ_PREV(before, deadline_list, entry);
	if (before)
		TAILQ_INSERT_AFTER(&wheel->exact, before, deadline, entry);
	else
		TAILQ_INSERT_HEAD(&wheel->exact, deadline, entry);
	deadline->tick = WHEEL_EXACT;
}

void wheel_remove(struct wheel *wheel, struct deadline *deadline)
{
	take_out(wheel, deadline);
	deadline->due = 0;
}

/*
 * Take one deadline at a time from the front of the slot, so that its function may remove or
 * move any other. Deadlines set meanwhile go to other slots: this slot is wheel->tick, and
 * place() uses only later ones.
 */
static void run_slot(struct wheel *wheel, unsigned slot, usec_t now)
{
	struct deadline_list *due = &wheel->slots[slot];
	struct deadline *deadline;

	wheel->used[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
	while ((deadline = TAILQ_FIRST(due)) != NULL) {
		TAILQ_REMOVE(due, deadline, entry);
		deadline->tick = 0;
		if (deadline->due == 0)
			continue;
		if (deadline->due > now) {
			place(wheel, deadline);
			continue;
		}
		deadline->due = 0;
		deadline->expire(deadline);
	}
}

/* Runs at most as many as there are now, so that a function which sets its own again ends. */
static void run_exact(struct wheel *wheel, usec_t now)
{
	struct deadline *deadline;
	unsigned count = 0;

	TAILQ_FOREACH (deadline, &wheel->exact, entry)
		count++;
	while (count-- > 0 && (deadline = TAILQ_FIRST(&wheel->exact)) != NULL &&
		deadline->due <= now) {
		wheel_remove(wheel, deadline);
		deadline->expire(deadline);
	}
}

void wheel_run(struct wheel *wheel, usec_t now)
{
	const int64_t until = now / WHEEL_TICK;

	run_exact(wheel, now);
	/* After a long time without a run, one pass over all slots is enough. */
	if (until - wheel->tick > WHEEL_SLOTS)
		wheel->tick = until - WHEEL_SLOTS;
	while (wheel->tick < until) {
		const unsigned slot = slot_of(++wheel->tick);

		if (wheel->used[slot / 64] & (UINT64_C(1) << (slot % 64)))
			run_slot(wheel, slot, now);
	}
}

/* Returns when the next slot that is used is due; 0 if none is. */
static usec_t next_slot(const struct wheel *wheel)
{
	for (int64_t tick = wheel->tick + 1; tick < wheel->tick + WHEEL_SLOTS; tick++) {
		const unsigned slot = slot_of(tick);

		if (wheel->used[slot / 64] & (UINT64_C(1) << (slot % 64)))
			return tick * WHEEL_TICK;
		if (wheel->used[slot / 64] >> (slot % 64) == 0)
			tick += 63 - slot % 64; /* nothing more in this word */
	}
	return 0;
}

usec_t wheel_next(const struct wheel *wheel)
{
	const struct deadline *exact = TAILQ_FIRST(&wheel->exact);
	const usec_t slot = next_slot(wheel);

	return exact && (slot == 0 || exact->due < slot) ? exact->due : slot;
}
