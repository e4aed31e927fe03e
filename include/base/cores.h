/* SPDX-License-Identifier: ISC */
/*
 * Processor cores: how many this process may use, and the texts in which Linux tells how many a machine
 * or a container has.
 */
#ifndef PGUSHER_BASE_CORES_H
#define PGUSHER_BASE_CORES_H

#include <stdbool.h>
#include <stdint.h>

/* More cores than any machine has: a text with more is malformed. */
enum { CORES_MOST = 65536 };

/*
 * Returns how many cores a list such as `0-3,8` has, as in /sys/devices/system/cpu/online
 * (cpuset(7), "List format"). Returns 0 if the text is malformed.
 */
unsigned cores_in_list(const char *text);

/* Threads can be bound to cores of lower numbers only (CPU_SETSIZE). */
enum { CORE_NUMBERS = 1024 };

struct core_list {
	unsigned count;
	uint16_t cores[CORE_NUMBERS];
};

/*
 * Read a list of cores by their numbers, such as `0-3 8`, in its order; blanks or commas separate them.
 * An empty text is an empty list. Returns false if it is malformed, or too long.
 */
bool core_list_read(const char *text, struct core_list *out);

/* Returns the first core of the list that this process may not use; -1: it may use all. */
int core_list_missing(const struct core_list *list);

/*
 * Threads are about to be bound to some cores: those that the calling thread may use now remain those of
 * the process. To be called before other threads use the functions here.
 */
void cores_keep(void);

/* Let the calling thread, which may have been started by a bound one, run on all these cores. */
void cores_unbind(void);

/*
 * Returns how many cores a quota such as `150000 100000` is worth, rounded up, as in cpu.max of a
 * control group (Linux, "Control Group v2"). Returns 0 if there is no limit (`max 100000`), or if the
 * text is malformed.
 */
unsigned cores_in_quota(const char *text);

/*
 * Returns how many cores this process may use: its affinity (sched_getaffinity(2)), and the quotas of
 * its control group and of those above. At least 1. It reads some small files each time.
 */
unsigned cores_available(void);

#endif
