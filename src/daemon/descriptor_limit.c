/* SPDX-License-Identifier: ISC */
#include "daemon/descriptor_limit.h"

#include <dirent.h>
#include <sys/resource.h>

#include "base/log.h"
#include "model/shared/all_users.h"

enum {
	/* Descriptors besides those of links: the log, listening sockets, the loop's own. */
	OTHER_DESCRIPTORS = 10,
	/* The same without /proc, where they could be counted: rather too many. */
	OTHERS_UNCOUNTED = 32,
};

void descriptor_limit_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* the log tells both limits */
}

/* The number of servers if every user uses every database. */
static unsigned long long expected_servers(const struct registry *registry)
{
	const unsigned users = all_users_count(registry->process);
	const struct database *database, *next;
	unsigned long long sum = 0;

	HASH_ITER (by_name, registry->process->directory.databases, database, next) {
		const struct settings *settings = registry->process->settings;
		int size = database_configured_size(database, settings);

		if (size == POOL_SIZE_AUTO)
			size = settings->auto_pool_max;
		sum += (unsigned long long)size * (database->config->user ? 1 : users);
	}
	return sum;
}

void descriptor_limit_log(const struct registry *registry)
{
	struct rlimit limit = {0};

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	log_write(LEVEL_LOG,
		"kernel file descriptor limit: %llu (hard: %llu); max_client_conn: %d, max expected "
		"fd use: %llu",
		(unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max,
		registry->process->settings->max_client_conn,
		(unsigned long long)registry->process->settings->max_client_conn +
			OTHER_DESCRIPTORS + expected_servers(registry));
}

/* Returns 0 without /proc. */
static unsigned count_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	if (!folder)
		return 0;
	while (readdir(folder))
		count++;
	closedir(folder);
	return count > 3 ? count - 3 : 0; /* `.`, `..` and the folder's own */
}

void descriptor_limit_count_others(struct registry *registry)
{
	struct process *process = registry->process;
	const unsigned links = process->limits.clients + process_servers(process);
	const unsigned count = count_open();

	process->descriptors.others = count > links ? count - links : OTHERS_UNCOUNTED;
	descriptor_limit_review(registry);
}

void descriptor_limit_review(struct registry *registry)
{
	const unsigned before = registry->process->descriptors.limit;
	struct rlimit limit;
	unsigned now;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	now = limit.rlim_cur > INT32_MAX ? INT32_MAX : (unsigned)limit.rlim_cur;
	if (before != 0 && now != before)
		log_write(LEVEL_LOG, "kernel file descriptor limit: %u now", now);
	descriptors_review(registry, now);
}
