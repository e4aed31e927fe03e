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

void wheel_set(struct wheel *wheel, struct deadline *deadline, usec_t due)
{
	deadline->due = due;
	if (due == 0)
		return;
	if (deadline->tick != 0) {
		if (deadline->tick <= tick_of(due))
			return;
		TAILQ_REMOVE(&wheel->slots[slot_of(deadline->tick)], deadline, entry);
	}
	place(wheel, deadline);
}

void wheel_remove(struct wheel *wheel, struct deadline *deadline)
{
	if (deadline->tick != 0)
		TAILQ_REMOVE(&wheel->slots[slot_of(deadline->tick)], deadline, entry);
	deadline->tick = 0;
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

void wheel_run(struct wheel *wheel, usec_t now)
{
	const int64_t until = now / WHEEL_TICK;

	/* After a long time without a run, one pass over all slots is enough. */
	if (until - wheel->tick > WHEEL_SLOTS)
		wheel->tick = until - WHEEL_SLOTS;
	while (wheel->tick < until) {
		const unsigned slot = slot_of(++wheel->tick);

		if (wheel->used[slot / 64] & (UINT64_C(1) << (slot % 64)))
			run_slot(wheel, slot, now);
	}
}

usec_t wheel_next(const struct wheel *wheel)
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
