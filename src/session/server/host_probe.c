/* SPDX-License-Identifier: ISC */
#include "session/server/host_probe.h"

#include <stdlib.h>
#include <string.h>

#include "session/relay/own_query.h"
#include "session/server/host_report.h"

/*
 * The setting counts only if it is the host's, and not one of this user or database. Positions are
 * written as numbers. A primary of a later timeline was promoted later.
 */
#define ROLE                                                                                   \
	"SELECT pg_catalog.pg_is_in_recovery(), "                                              \
	"(SELECT s.setting = 'on' AND s.source IN "                                            \
	"('configuration file', 'command line', 'environment variable') "                      \
	"FROM pg_catalog.pg_settings s WHERE s.name = 'default_transaction_read_only')"

#define ALL                                                                                    \
	ROLE ", (SELECT c.system_identifier FROM pg_catalog.pg_control_system() c), "          \
	     "CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL ELSE "                        \
	     "pg_catalog.substr(pg_catalog.pg_walfile_name("                                   \
	     "pg_catalog.pg_current_wal_lsn()), 1, 8) END, "                                   \
	     "pg_catalog.pg_wal_lsn_diff(CASE WHEN pg_catalog.pg_is_in_recovery() THEN "       \
	     "pg_catalog.pg_last_wal_replay_lsn() ELSE pg_catalog.pg_current_wal_lsn() END, "  \
	     "'0/0'), "                                                                        \
	     "pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_last_wal_receive_lsn(), '0/0'), "       \
	     "pg_catalog.floor(EXTRACT(epoch FROM pg_catalog.clock_timestamp() - "             \
	     "pg_catalog.pg_last_xact_replay_timestamp()) * 1000)"

static const char *question_of(const struct host *host)
{
	switch (host->question) {
	case HOST_ASKED_ALL:
		return ALL;
	case HOST_ASKED_ROLE:
		return ROLE;
	case HOST_ASKED_NOTHING:
		break;
	}
	return "";
}

bool host_probe_send(struct server_link *server)
{
	struct host *host = server->at;

	/* The watch of a host is not given up for what other servers are asked. */
	if (host->watch == server)
		host->asked_at = loop_now(server->link.stream.loop);
	server->question = (uint8_t)host->question;
	if (!own_query_send(server, question_of(host)))
		return false;
	server_set_task(server, SERVER_TASK_PROBE);
	return true;
}

/* --- the answer --------------------------------------------------------------------------- */

static bool is_true(const struct row_value *value)
{
	return value->data && value->length == 1 && value->data[0] == 't';
}

/* A number of at most 20 digits, or of 8 hexadecimal ones; 0: NULL, or anything else. */
static uint64_t number_of(const struct row_value *value, int base)
{
	char text[24];

	if (!value->data || value->length >= sizeof(text))
		return 0;
	memcpy(text, value->data, value->length);
	text[value->length] = '\0';
	return text[0] == '-' ? 0 : strtoull(text, NULL, base);
}

void host_probe_take_row(struct server_link *server, int columns,
	const struct row_value values[HOST_PROBE_COLUMNS])
{
	struct host_facts facts = {0};

	if (columns != 2 && columns != HOST_PROBE_COLUMNS)
		return;
	facts.role = is_true(&values[0]) ? HOST_ROLE_STANDBY : HOST_ROLE_PRIMARY;
	facts.read_only = is_true(&values[1]);
	if (columns == HOST_PROBE_COLUMNS) {
		facts.system = number_of(&values[2], 10);
		facts.timeline = (uint32_t)number_of(&values[3], 16);
		facts.progress = (struct host_progress){
			.position = number_of(&values[4], 10),
			.received = number_of(&values[5], 10),
			.replay_age = (usec_t)number_of(&values[6], 10) * 1000,
			.known = true,
		};
	}
	host_report_probed(server, &facts);
}

void host_probe_refused(struct server_link *server, const struct report *report)
{
	struct host *host = server->at;

	/* Other errors pass, such as those of a server that is short of memory. */
	if (!report_is_of(report, "42") && !report_is_of(report, "0A"))
		return;
	/* Another server may have refused the same question meanwhile. */
	if (host->question == server->question && host->question < HOST_ASKED_NOTHING)
		host->question++;
	link_log_repeated(&server->link, LEVEL_DEBUG, "cannot ask for the role: %s",
		report->text ? report->text : "no message");
}
