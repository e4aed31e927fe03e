/* SPDX-License-Identifier: ISC */
/*
 * Processor cores: how many this process may use, and the texts in which Linux tells how many a machine
 * or a container has.
 */
#ifndef PGUSHER_BASE_CORES_H
#define PGUSHER_BASE_CORES_H

/* More cores than any machine has: a text with more is malformed. */
enum { CORES_MOST = 65536 };

/*
 * Returns how many cores a list such as `0-3,8` has, as in /sys/devices/system/cpu/online
 * (cpuset(7), "List format"). Returns 0 if the text is malformed.
 */
unsigned cores_in_list(const char *text);

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
