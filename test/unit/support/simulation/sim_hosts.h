/* SPDX-License-Identifier: ISC */
/*
 * The hosts of the simulated databases: each is a primary or a standby, lives, starts, refuses or
 * hangs, and tells its role as its version does. They change in sim_moves.
 */
#ifndef PGUSHER_TEST_SIM_HOSTS_H
#define PGUSHER_TEST_SIM_HOSTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "support/postgres/sim_postgres.h"

enum { SIM_HOSTS = 3 };

enum sim_host_state {
	SIM_HOST_LIVES,
	SIM_HOST_STARTS, /* accepts connections, and refuses logins for now (57P03) */
	SIM_HOST_REFUSES, /* connections */
	SIM_HOST_HANGS, /* accepts and answers nothing; its servers go on if it lives again */
};

struct sim_host {
	char name[16]; /* as configured: a folder, or an address */
	unsigned port;
	enum sim_host_state state;
	bool is_standby;
	bool was_primary, was_standby, was_fenced; /* ever */
	bool is_fenced; /* default_transaction_read_only, in its configuration */
	uint32_t timeline; /* on which it was the primary last */
	uint64_t behind; /* bytes that a standby has not replayed */
};

/* The databases of this run have so many hosts; 0: one, which is always there. */
extern unsigned sim_hosts_count;
extern struct sim_host sim_hosts[SIM_HOSTS];

/* Which probes the hosts of this run answer, and whether they report their role. */
enum sim_hosts_answer { SIM_HOSTS_ALL, SIM_HOSTS_ROLE, SIM_HOSTS_NOTHING };
extern enum sim_hosts_answer sim_hosts_answer;
extern bool sim_hosts_report;

/* Draws the hosts of a run, and the section of its configuration with the databases. */
void sim_hosts_draw(char *out, size_t size);

/* The host with this address; NULL: the hosts of this run are not simulated. */
struct sim_host *sim_hosts_at(const struct sockaddr_storage *where);

/* Does it refuse to write? */
bool sim_host_is_read_only(const struct sim_host *host);

/* The server logs in at a host that reports its role. */
void sim_host_welcome(struct sim_postgres *pg);

/* Before a ReadyForQuery: what has changed since. */
void sim_host_report(struct sim_postgres *pg);

/* The pooler's question for the role (session/server/host_probe). */
bool sim_host_is_probe(const char *sql);

/* Appends the answer without its end. Returns false if the question is refused. */
bool sim_host_answer_probe(struct sim_postgres *pg, const char *sql);

#endif
