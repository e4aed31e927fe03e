/* SPDX-License-Identifier: ISC */
/* Metrics of the hosts of SHOW HOSTS. */
#include <stdio.h>

#include "admin/metrics/metric_sources.h"
#include "model/shared/all_hosts.h"

struct known_host_figures metric_figures_of_host(const struct host *host)
{
	const struct host_progress *progress = &host->progress;
	const bool has_lag = host->role == HOST_ROLE_STANDBY && progress->known;

	return (struct known_host_figures){
		.up = host->failed_since == 0,
		.is_primary = host->role == HOST_ROLE_UNKNOWN
			? METRIC_UNKNOWN
			: host->role == HOST_ROLE_PRIMARY && !host->superseded,
		.connections = host->servers,
		.connect_time = host->connect_time > 0 ? host->connect_time : METRIC_UNKNOWN,
		.lag_bytes = has_lag ? (int64_t)progress->behind : METRIC_UNKNOWN,
		.lag_time = !has_lag	       ? METRIC_UNKNOWN
			: progress->behind > 0 ? progress->replay_age
					       : 0,
	};
}

/* A name that has no address is no host. */
static void add_host(struct metric_samples *samples, const struct host *host)
{
	const struct known_host_figures figures = metric_figures_of_host(host);
	char port[16], address[ADDRESS_TEXT_SIZE];

	snprintf(port, sizeof(port), "%u", host->port);
	metric_samples_label(samples, "host", host->name);
	metric_samples_label(samples, "address",
		host->address.family == AF_UNSPEC ? "" : address_host(&host->address, address));
	metric_samples_label(samples, "port", port);
	metric_samples_add(samples, &figures);
}

static void collect(struct metric_samples *samples, const struct metric_context *context,
	const void *detail)
{
	const struct process *process = context->registry->process;
	struct host_walk walk = {.process = process};
	const struct host *host;
	union host_room room;

	(void)detail;
	while ((host = host_walk_next(&walk)) != NULL) {
		if (!host->is_name)
			add_host(samples, all_hosts_view(process, host, &room));
	}
}

const struct metric_source metric_known_hosts = {
	collect, sizeof(struct known_host_figures), NULL};
