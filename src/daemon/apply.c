/* SPDX-License-Identifier: ISC */
#include "daemon/apply.h"

#include <string.h>

#include "base/log.h"
#include "daemon/handover.h"

bool apply_log(const struct settings *settings, const struct options *options)
{
	const struct log_options log = {
		.file = settings->logfile,
		.to_stderr = !options->quiet && !options->background,
		.to_syslog = settings->syslog,
		.syslog_ident = settings->syslog_ident,
		.syslog_facility = settings->syslog_facility,
		.verbose = settings->verbose,
		.format = settings->log_format,
		.repeats = settings->log_repeats,
	};

	return log_configure(&log);
}

static bool same_log(const struct settings *a, const struct settings *b)
{
	return strcmp(a->logfile, b->logfile) == 0 && a->syslog == b->syslog &&
		strcmp(a->syslog_ident, b->syslog_ident) == 0 &&
		strcmp(a->syslog_facility, b->syslog_facility) == 0 &&
		a->verbose == b->verbose && a->log_format == b->log_format &&
		a->log_repeats == b->log_repeats;
}

void apply_changed_log(const struct settings *settings, const struct settings *old,
	const struct options *options)
{
	if (!same_log(settings, old))
		apply_log(settings, options);
}

struct tcp_options apply_tcp_options(const struct settings *settings)
{
	return (struct tcp_options){
		.keepalive = settings->tcp_keepalive,
		.keepcnt = settings->tcp_keepcnt,
		.keepidle = settings->tcp_keepidle,
		.keepintvl = settings->tcp_keepintvl,
		.user_timeout = settings->tcp_user_timeout,
		.buffer = settings->tcp_socket_buffer,
	};
}

static bool same_tcp_options(const struct settings *a, const struct settings *b)
{
	return a->tcp_keepalive == b->tcp_keepalive && a->tcp_keepcnt == b->tcp_keepcnt &&
		a->tcp_keepidle == b->tcp_keepidle && a->tcp_keepintvl == b->tcp_keepintvl &&
		a->tcp_user_timeout == b->tcp_user_timeout &&
		a->tcp_socket_buffer == b->tcp_socket_buffer;
}

/* Metrics that cannot be had are no reason to refuse a configuration. */
static void apply_metrics(struct daemon *daemon)
{
	char why[512];

	/* The place is another process's now. */
	if (handover_has_left(daemon))
		return;
	if (!metrics_follow(&daemon->metrics, why, sizeof(why)))
		log_write(LEVEL_ERROR, "cannot serve metrics: %s", why);
}

void apply_settings(struct daemon *daemon, const struct settings *old)
{
	const struct settings *settings = daemon->registry.process->settings;
	const struct tcp_options tcp = apply_tcp_options(settings);

	if (settings->tcp_defer_accept != old->tcp_defer_accept)
		listeners_set_defer_accept(&daemon->listeners, settings->tcp_defer_accept);
	if (!same_tcp_options(settings, old))
		listeners_set_tcp_options(&daemon->listeners, &tcp);
	resolver_set_lives(
		daemon->registry.resolver, settings->dns_max_ttl, settings->dns_nxdomain_ttl);
	resolver_set_zone_period(daemon->registry.resolver, settings->dns_zone_check_period);
	apply_metrics(daemon);
}
