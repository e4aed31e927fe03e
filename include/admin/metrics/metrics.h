/* SPDX-License-Identifier: ISC */
/*
 * The HTTP endpoint: /metrics for Prometheus, /healthz and /readyz for load balancers and
 * orchestrators; and the page for browsers, which stands above and is called through a table.
 *
 * The daemon owns it. One page is written at a time, a piece in every turn of the loop;
 * requests that come meanwhile share the next page. A page stays in memory until it has been
 * sent to its last reader. There are at most METRICS_PAGES: if slow readers keep them, new
 * requests get the newest.
 */
#ifndef PGUSHER_ADMIN_METRICS_METRICS_H
#define PGUSHER_ADMIN_METRICS_METRICS_H

#include "admin/metrics/metric_page.h"
#include "admin/metrics/probes.h"
#include "net/http/http.h"
#include "net/listener.h"

enum { METRICS_PAGES = 4 };

/* A finished page. */
struct metrics_page;

/* How the endpoint calls the page for browsers, which the daemon names. */
struct metrics_site {
	/*
	 * Answer the request, now or in a later turn, if its path is one of the page; returns
	 * whether it is.
	 */
	bool (*answer)(void *context, struct http_request *request);
	/* The endpoint stops: all requests that wait for an answer are to be answered now. */
	void (*stop)(void *context);
	void *context;
};

struct metrics {
	struct registry *registry;
	const struct listeners *listeners; /* of clients, for /readyz */
	int passed; /* a socket passed by the service manager, used instead of the settings; -1: none */
	struct metrics_site site;
	struct http *http; /* NULL: switched off */
	bool sends_passwords_in_clear; /* the warning about that is in the log */
	char *addresses; /* that it listens on */
	int port;
	usec_t started; /* start of the process, microseconds since 1970 */
	struct loop_task writing; /* queued while requests wait for a page */
	struct metric_page page;
	bool is_writing;
	struct http_request
		*waiting[HTTP_REQUESTS]; /* for a page; first those that get the current page */
	unsigned waiting_count, served_count; /* all of them; those that get the current page */
	struct metrics_page *newest; /* the page finished last; NULL: it was freed */
	unsigned pages; /* finished and still being sent */
	uint64_t requests[PROBES_PATHS][PROBES_CODES]; /* answered */
};

/*
 * Initialize; nothing is opened yet. The struct must not move while the loop exists. `passed`
 * is a socket to be used instead of the address in the settings, or -1. The context of the site
 * is only used until metrics_close(); the site may be NULL: there is no page.
 */
void metrics_init(struct metrics *metrics, struct registry *registry,
	const struct listeners *listeners, int passed, const struct metrics_site *site);

/*
 * Follow the settings: start to listen, listen elsewhere, or stop. Returns false and sets `why`
 * if the address cannot be used; the endpoint then listens where it did before. Whether
 * connections are encrypted follows the settings by itself, with each connection.
 */
bool metrics_follow(struct metrics *metrics, char *why, size_t size);

/* Accept again after a lack of descriptors; to be called a few times per second. */
static inline void metrics_upkeep(const struct metrics *metrics)
{
	if (metrics->http)
		http_upkeep(metrics->http);
}

/* Stop: requests that wait for a page are refused. */
void metrics_close(struct metrics *metrics);

#endif
