/* SPDX-License-Identifier: ISC */
#include "base/cores.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- texts -------------------------------------------------------------------------------- */

/* Read a number of a few digits, and advance behind it. Returns false if there is none. */
static bool read_number(const char **at, unsigned long long *out)
{
	const size_t digits = strspn(*at, "0123456789");

	if (digits == 0 || digits > 15)
		return false;
	*out = strtoull(*at, NULL, 10);
	*at += digits;
	return true;
}

/* Is this the end of the text, but for the end of its line? */
static bool is_end(const char *at)
{
	return *at == '\0' || strcmp(at, "\n") == 0;
}

unsigned cores_in_list(const char *text)
{
	unsigned long long first, last, sum = 0;

	for (;;) {
		if (!read_number(&text, &first))
			return 0;
		last = first;
		if (*text == '-') {
			text++;
			if (!read_number(&text, &last))
				return 0;
		}
		if (last < first || last >= CORES_MOST)
			return 0;
		sum += last - first + 1;
		if (sum > CORES_MOST)
			return 0;
		if (*text != ',')
			break;
		text++;
	}
	return is_end(text) ? (unsigned)sum : 0;
}

static bool add_cores(struct core_list *list, unsigned long long first, unsigned long long last)
{
	if (last < first || last >= CORE_NUMBERS)
		return false;
	for (; first <= last; first++) {
		if (list->count == CORE_NUMBERS)
			return false;
		list->cores[list->count++] = (uint16_t)first;
	}
	return true;
}

bool core_list_read(const char *text, struct core_list *out)
{
	static const char separators[] = ", \t";
	unsigned long long first, last;

	out->count = 0;
	for (text += strspn(text, separators); *text; text += strspn(text, separators)) {
		if (!read_number(&text, &first))
			return false;
		last = first;
		if (*text == '-') {
			text++;
			if (!read_number(&text, &last))
				return false;
		}
		if ((*text && !strchr(separators, *text)) || !add_cores(out, first, last))
			return false;
	}
	return true;
}

/* --- affinity ----------------------------------------------------------------------------- */

static cpu_set_t kept;
static bool is_kept;

static bool read_affinity(cpu_set_t *out)
{
	CPU_ZERO(out);
	if (!is_kept)
		return sched_getaffinity(0, sizeof(*out), out) == 0;
	*out = kept;
	return true;
}

void cores_keep(void)
{
	is_kept = read_affinity(&kept);
}

void cores_unbind(void)
{
	/* If the process may use none of them any more, the thread stays where it is. */
	if (is_kept)
		(void)sched_setaffinity(0, sizeof(kept), &kept);
}

int core_list_missing(const struct core_list *list)
{
	cpu_set_t set;

	if (!read_affinity(&set))
		return -1;
	for (unsigned i = 0; i < list->count; i++) {
		if (!CPU_ISSET(list->cores[i], &set))
			return list->cores[i];
	}
	return -1;
}

/* So much time of each period, in the same unit. */
static unsigned worth_of(unsigned long long quota, unsigned long long period)
{
	if (quota == 0 || period == 0 || (quota + period - 1) / period > CORES_MOST)
		return 0;
	return (unsigned)((quota + period - 1) / period);
}

unsigned cores_in_quota(const char *text)
{
	unsigned long long quota, period;

	if (!read_number(&text, &quota) || *text++ != ' ' || !read_number(&text, &period) ||
		!is_end(text))
		return 0;
	return worth_of(quota, period);
}

/* --- this process ------------------------------------------------------------------------- */

static unsigned affinity(void)
{
	cpu_set_t set;
	int count;

	if (!read_affinity(&set))
		return 1;
	count = CPU_COUNT(&set);
	return count > 0 ? (unsigned)count : 1;
}

/* Read the first line of the file, cut to the size of the buffer. Returns false if there is none. */
static bool read_line(const char *path, char *out, int size)
{
	FILE *file = fopen(path, "re");
	bool done;

	if (!file)
		return false;
	done = fgets(out, size, file) != NULL;
	fclose(file);
	return done;
}

/* The quota of a folder of control groups, of version 2 or 1; 0: none. */
static unsigned quota_of(const char *folder)
{
	char path[PATH_MAX + 32], quota[64], period[64];

	snprintf(path, sizeof(path), "%s/cpu.max", folder);
	if (read_line(path, quota, sizeof(quota)))
		return cores_in_quota(quota);
	snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
	if (!read_line(path, quota, sizeof(quota)) || quota[0] == '-')
		return 0;
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
	if (!read_line(path, period, sizeof(period)))
		return 0;
	return worth_of(strtoull(quota, NULL, 10), strtoull(period, NULL, 10));
}

/* The smallest quota from this folder up to the root of the hierarchy, which has `root` bytes. */
static unsigned least_quota(char *folder, size_t root)
{
	unsigned least = 0;

	for (;;) {
		const unsigned quota = quota_of(folder);
		char *slash = strrchr(folder, '/');

		if (quota > 0 && (least == 0 || quota < least))
			least = quota;
		if (strlen(folder) <= root || !slash)
			return least;
		*slash = '\0';
	}
}

/*
 * The quota by one line of /proc/self/cgroup (cgroups(7)): `0::/path` of version 2, or
 * `N:controllers:/path` with the controller cpu of version 1. 0: none.
 */
static unsigned quota_of_line(char *line)
{
	char *controllers = strchr(line, ':'), *path, folder[PATH_MAX];
	const char *root = "/sys/fs/cgroup";

	line[strcspn(line, "\n")] = '\0';
	path = controllers ? strchr(++controllers, ':') : NULL;
	if (!path)
		return 0;
	*path++ = '\0';
	if (controllers[0] != '\0') {
		if (strcmp(controllers, "cpu") != 0 && strcmp(controllers, "cpu,cpuacct") != 0)
			return 0;
		root = "/sys/fs/cgroup/cpu";
	}
	snprintf(folder, sizeof(folder), "%s%s", root, strcmp(path, "/") == 0 ? "" : path);
	return least_quota(folder, strlen(root));
}

unsigned cores_available(void)
{
	unsigned cores = affinity();
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];

	while (file && fgets(line, sizeof(line), file)) {
		const unsigned quota = quota_of_line(line);

		if (quota > 0 && quota < cores)
			cores = quota;
	}
	if (file)
		fclose(file);
	return cores;
}
