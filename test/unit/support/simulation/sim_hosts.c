/* SPDX-License-Identifier: ISC */
#include "support/simulation/sim_hosts.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "support/fakes/fake_pool.h"
#include "support/simulation/sim_random.h"
#include "wire/message.h"
#include "wire/writer.h"

/* How far the WAL of the primary is. */
#define POSITION UINT64_C(20000000)
#define SYSTEM "7300000000000000001"

unsigned sim_hosts_count;
struct sim_host sim_hosts[SIM_HOSTS];
enum sim_hosts_answer sim_hosts_answer;
bool sim_hosts_report;

/* --- set-up ------------------------------------------------------------------------------- */

static void draw_host(struct sim_host *host, bool has_ports)
{
	const unsigned n = (unsigned)(host - sim_hosts);

	*host = (struct sim_host){
		.port = has_ports ? 5432 + n : 5432,
		.is_standby = n > 0,
		.was_standby = n > 0,
		.was_primary = n == 0,
		.timeline = n == 0,
	};
	snprintf(host->name, sizeof(host->name), sim_chance(50) ? "/h%u" : "10.0.0.%u", n);
	if (sim_chance(10))
		host->state = SIM_HOST_REFUSES;
}

static void add(char *out, size_t size, const char *text)
{
	snprintf(out + strlen(out), size - strlen(out), "%s", text);
}

/* Each database lists all hosts, in any order. */
static void draw_database(char *out, size_t size, const char *name, bool has_ports)
{
	static const char *const targets[] = {"any", "read-write", "read-write", "read-only",
		"primary", "standby", "prefer-standby"};
	static const char *const orders[] = {
		"disable", "round-robin", "random", "least-connections"};
	const unsigned first = sim_below(sim_hosts_count);
	const unsigned step = sim_chance(50) ? 1 : sim_hosts_count - 1;
	char ports[64] = "", port[16];

	add(out, size, name);
	add(out, size, " = host=");
	for (unsigned i = 0; i < sim_hosts_count && i < SIM_HOSTS; i++) {
		const struct sim_host *host = &sim_hosts[(first + i * step) % sim_hosts_count];

		add(out, size, i ? "," : "");
		add(out, size, host->name);
		snprintf(port, sizeof(port), "%s%u", i ? "," : "", host->port);
		add(ports, sizeof(ports), port);
	}
	add(out, size, " port=");
	add(out, size, has_ports ? ports : "5432");
	add(out, size, " target_session_attrs=");
	add(out, size, targets[sim_below(COUNT(targets))]);
	add(out, size, " load_balance_hosts=");
	add(out, size, orders[sim_below(COUNT(orders))]);
	if (sim_chance(20))
		add(out, size, " max_standby_lag=1000B");
}

void sim_hosts_draw(char *out, size_t size)
{
	const bool has_ports = sim_chance(30);

	sim_hosts_count = sim_chance(50) ? 2 + sim_below(SIM_HOSTS - 1) : 0;
	if (sim_hosts_count == 0) {
		snprintf(out, size,
			"[databases]\ndb = host=/tmp\nother = host=/tmp pool_weight=2\n");
		return;
	}
	for (unsigned i = 0; i < sim_hosts_count && i < SIM_HOSTS; i++)
		draw_host(&sim_hosts[i], has_ports);
	sim_hosts_report = sim_chance(70);
	sim_hosts_answer =
		sim_chance(70) ? SIM_HOSTS_ALL : (enum sim_hosts_answer)(1 + sim_below(2));
	snprintf(out, size, "[databases]\n");
	draw_database(out, size, "db", has_ports);
	add(out, size, "\n");
	draw_database(out, size, "other", has_ports);
	add(out, size, " pool_weight=2\n");
}

/* --- which host --------------------------------------------------------------------------- */

static void read_address(
	const struct sockaddr_storage *where, char *name, size_t size, unsigned *port)
{
	const struct sockaddr_un *path = (const struct sockaddr_un *)where;
	const struct sockaddr_in *address = (const struct sockaddr_in *)where;

	if (where->ss_family == AF_UNIX) {
		assert_int_equal(sscanf(path->sun_path, "%15[^.]", name), 1);
		name[strlen(name) - 1] = '\0';
		*port = (unsigned)strtoul(strrchr(path->sun_path, '.') + 1, NULL, 10);
	} else {
		assert_int_equal(where->ss_family, AF_INET);
		assert_non_null(inet_ntop(AF_INET, &address->sin_addr, name, (socklen_t)size));
		*port = ntohs(address->sin_port);
	}
}

struct sim_host *sim_hosts_at(const struct sockaddr_storage *where)
{
	char name[INET_ADDRSTRLEN] = "";
	unsigned port;

	if (sim_hosts_count == 0)
		return NULL;
	read_address(where, name, sizeof(name), &port);
	for (unsigned i = 0; i < sim_hosts_count && i < SIM_HOSTS; i++)
		if (strcmp(sim_hosts[i].name, name) == 0 && sim_hosts[i].port == port)
			return &sim_hosts[i];
	fail_msg("a server is connected to %s, port %u", name, port);
	return NULL;
}

bool sim_host_is_read_only(const struct sim_host *host)
{
	return host && (host->is_standby || host->is_fenced);
}

/* --- what it tells ------------------------------------------------------------------------ */

static void report(struct sim_postgres *pg, const char *name, bool value, bool *told)
{
	writer_parameter_status(&pg->out, name, value ? "on" : "off");
	*told = value;
}

void sim_host_welcome(struct sim_postgres *pg)
{
	if (!pg->host || !sim_hosts_report)
		return;
	report(pg, "in_hot_standby", pg->host->is_standby, &pg->told_standby);
	report(pg, "default_transaction_read_only", pg->host->is_fenced, &pg->told_fenced);
}

void sim_host_report(struct sim_postgres *pg)
{
	if (!pg->host || !sim_hosts_report)
		return;
	if (pg->told_standby != pg->host->is_standby)
		report(pg, "in_hot_standby", pg->host->is_standby, &pg->told_standby);
	if (pg->told_fenced != pg->host->is_fenced)
		report(pg, "default_transaction_read_only", pg->host->is_fenced,
			&pg->told_fenced);
}

bool sim_host_is_probe(const char *sql)
{
	static const char start[] = "SELECT pg_catalog.pg_is_in_recovery(), ";

	return strncmp(sql, start, strlen(start)) == 0;
}

static void write_value(struct sim_postgres *pg, const char *text)
{
	writer_int32(&pg->out, text ? (uint32_t)strlen(text) : UINT32_MAX);
	if (text)
		writer_bytes(&pg->out, text, strlen(text));
}

static void write_progress(struct sim_postgres *pg)
{
	const struct sim_host *host = pg->host;
	char timeline[16], position[32], received[32];

	snprintf(timeline, sizeof(timeline), "%08X", host->timeline);
	snprintf(position, sizeof(position), "%llu",
		(unsigned long long)(POSITION - (host->is_standby ? host->behind : 0)));
	snprintf(received, sizeof(received), "%llu", (unsigned long long)POSITION);
	write_value(pg, SYSTEM);
	write_value(pg, host->is_standby ? NULL : timeline);
	write_value(pg, position);
	write_value(pg, host->is_standby ? received : NULL);
	write_value(pg, host->is_standby && host->behind > 0 ? "250" : NULL);
}

bool sim_host_answer_probe(struct sim_postgres *pg, const char *sql)
{
	const bool is_all = strstr(sql, "system_identifier") != NULL;
	size_t mark;

	assert_non_null(pg->host);
	if (sim_hosts_answer > (is_all ? SIM_HOSTS_ALL : SIM_HOSTS_ROLE))
		return false;
	letters_write(&pg->out, FROM_SERVER, "T");
	mark = writer_begin(&pg->out, PQ_DATA_ROW);
	writer_int16(&pg->out, is_all ? 7 : 2);
	write_value(pg, pg->host->is_standby ? "t" : "f");
	write_value(pg, pg->host->is_fenced ? "t" : "f");
	if (is_all)
		write_progress(pg);
	writer_end(&pg->out, mark);
	writer_command_complete(&pg->out, "SELECT 1");
	return true;
}
