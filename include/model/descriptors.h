/* SPDX-License-Identifier: ISC */
/*
 * How the file descriptors of the process (RLIMIT_NOFILE, setrlimit(2)) are divided, so that
 * clients cannot take those that everything else needs:
 *
 *   others | clients and servers | consoles | logins | files
 *
 * "Others" were open when the process had started. "Files" are those that come and go: the log,
 * configuration files, metrics, look-ups of names and users. "Logins" are connections that have
 * not said yet what they want: each may go on until its StartupMessage, so that it gets an
 * answer. Servers have the numbers that their pools may need, up to a quarter of all; they may
 * use what clients leave, and clients what servers do not need.
 *
 * This module only counts. All its numbers are 0, and nothing is limited, until
 * descriptors_review().
 */
#ifndef PGUSHER_MODEL_DESCRIPTORS_H
#define PGUSHER_MODEL_DESCRIPTORS_H

#include <stdbool.h>

#include "base/clock.h"

struct pool;
struct process;
struct registry;

struct descriptors {
	unsigned limit; /* descriptors that may be open; 0: not known */
	unsigned others; /* open for something else than clients and servers */
	unsigned kept; /* for servers, open or not */
};

/*
 * Set the limit, and count again what the pools may need. Walks over all pools: to be called a
 * few times a second.
 */
void descriptors_review(struct registry *registry, unsigned limit);

/* There is a new pool: keep descriptors for its servers. */
void descriptors_add_pool(const struct pool *pool);

/* Returns whether a connection may be accepted, whatever it wants. */
bool descriptors_allow_login(const struct process *process);

/*
 * Returns whether a client that has sent its StartupMessage may stay. It is not admitted yet
 * (limits_admit_client()).
 */
bool descriptors_allow_client(const struct process *process, bool console);

/* Returns how many clients may stay at the same time, as far as descriptors go; 0: not known. */
unsigned descriptors_clients_most(const struct process *process);

/* Returns whether there are more servers than those that descriptors are kept for. */
bool descriptors_servers_exceed(const struct process *process);

/*
 * Returns whether a server connection may be opened. One for a cancel request may use the
 * descriptors of logins.
 */
bool descriptors_allow_server(const struct process *process, bool for_cancel);

#endif
