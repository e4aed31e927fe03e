/* SPDX-License-Identifier: ISC */
#include "daemon/apply.h"

#include "base/log.h"
#include "config/tcp_settings.h"
#include "session/rules/watching.h"

/* Any socket has room for as much, however small its buffers are: socket(7), SO_SNDBUF. */
enum { LEAST_RECEIVE = 4096 };

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

void apply_changed_log(const struct settings *settings, const struct settings *old,
	const struct options *options)
{
	if (settings_group_differs(settings, old, SETTING_GROUP_LOG))
		apply_log(settings, options);
}

/* A failure is only logged: it does not make the configuration invalid. */
static void apply_metrics(struct daemon *daemon)
{
	char why[512];

	/* The new process has taken over the port. */
	if (daemon->handed_over)
		return;
	if (!metrics_follow(&daemon->metrics, why, sizeof(why)))
		log_write(LEVEL_ERROR, "cannot serve metrics: %s", why);
}

void apply_receive_limit(struct daemon *daemon)
{
	const int buffer = daemon->registry.process->settings->tcp_socket_buffer;
	const int limit = buffer < LEAST_RECEIVE ? LEAST_RECEIVE : buffer;
	const struct registry *each;

	EACH_REGISTRY (each, &daemon->process)
		each->loop->receive_limit =
			buffer > 0 && limit < LOOP_RECEIVE_SIZE ? (size_t)limit : 0;
}

static void apply_to_worker(struct registry *registry)
{
	const struct settings *settings = registry->process->settings;

	resolver_set_lives(
		registry->resolver, settings->dns_max_ttl, settings->dns_nxdomain_ttl);
	resolver_set_zone_period(registry->resolver, settings->dns_zone_check_period);
	if (!watching_follow(registry))
		log_write(LEVEL_ERROR, "no memory for the log of slow queries");
}

void apply_settings(struct daemon *daemon, const struct settings *old)
{
	const struct settings *settings = daemon->registry.process->settings;
	const struct tcp_options tcp = tcp_settings_options(settings);
	struct registry *each;

	if (settings->tcp_defer_accept != old->tcp_defer_accept)
		listeners_set_defer_accept(&daemon->listeners, settings->tcp_defer_accept);
	if (settings_group_differs(settings, old, SETTING_GROUP_TCP))
		listeners_set_tcp_options(&daemon->listeners, &tcp);
	apply_receive_limit(daemon);
	EACH_REGISTRY (each, &daemon->process)
		apply_to_worker(each);
	if (!sources_follow(&daemon->process))
		log_write(LEVEL_ERROR, "no memory for per_address_exempt or proxy_networks");
	apply_metrics(daemon);
	file_watch_turn(&daemon->file_watch, settings->watch_config);
}
