/* SPDX-License-Identifier: ISC */
/*
 * The limit of open files (RLIMIT_NOFILE), as the kernel has it: raised at the start, and
 * followed when an operator changes it (prlimit(1)). model/descriptors divides it.
 */
#ifndef PGUSHER_DAEMON_DESCRIPTOR_LIMIT_H
#define PGUSHER_DAEMON_DESCRIPTOR_LIMIT_H

#include "model/registry.h"

/*
 * Raise the soft limit to the hard one. The soft one is low by default for programs that use
 * select(2); an operator limits this process by the hard one.
 */
void descriptor_limit_raise(void);

/* Log the limit, and how many descriptors the configuration may need. */
void descriptor_limit_log(const struct registry *registry);

/* Count the descriptors that are open now besides those of clients and servers. */
void descriptor_limit_count_others(struct registry *registry);

/* Read the limit again. To be called a few times a second. */
void descriptor_limit_review(struct registry *registry);

#endif
