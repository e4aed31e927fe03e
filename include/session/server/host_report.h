/* SPDX-License-Identifier: ISC */
/*
 * Learns of hosts from what servers say of themselves: at their login, by a report later, and in the
 * answer to a probe. PostgreSQL: in_hot_standby and default_transaction_read_only, which servers report
 * since version 14. The other workers are told of each change, and act on it alike. May close servers of
 * other hosts, and the server itself.
 */
#ifndef PGUSHER_SESSION_SERVER_HOST_REPORT_H
#define PGUSHER_SESSION_SERVER_HOST_REPORT_H

#include "model/host/hosts.h"
#include "model/registry.h"

/* The server reports a parameter during its login. */
void host_report_take_parameter(
	struct server_link *server, const char *name, const char *value);

/* The server has logged in: what it has reported holds for its host. */
void host_report_logged_in(struct server_link *server);

/* The server has reported a parameter after its login. */
void host_report_changed(struct server_link *server, const char *name, const char *value);

/* What a probe has told of a host. */
struct host_facts {
	enum host_role role;
	bool read_only;
	uint64_t system; /* 0: not told */
	uint32_t timeline; /* 0: not told */
	struct host_progress progress;
};

/* A probe has told this of the server's host. */
void host_report_probed(struct server_link *server, const struct host_facts *facts);

#endif
