/* SPDX-License-Identifier: ISC */
/*
 * The HTTP endpoint: /metrics for Prometheus, /healthz and /readyz for load balancers and
 * orchestrators, and a short page with links.
 *
 * It belongs to the daemon. One page is written at a time, a bit of it in every turn of the
 * loop; those who ask meanwhile get the next one, together. A page stays in memory until its
 * last reader has it, and no more than METRICS_PAGES are there at once: when readers are slow
 * the others get the newest.
 */
#ifndef PGUSHER_ADMIN_METRICS_METRICS_H
#define PGUSHER_ADMIN_METRICS_METRICS_H

#include "admin/metrics/metric_page.h"
#include "net/http.h"
#include "net/listener.h"

enum { METRICS_PAGES = 4 };

/* What is counted of itself; codes that are not in the list are counted as the last. */
enum { METRICS_PATHS = 4, METRICS_CODES = 4 };
extern const char *const metrics_paths[METRICS_PATHS];
extern const int metrics_codes[METRICS_CODES];

/* A finished page. */
struct metrics_page;

struct metrics {
	struct registry *registry;
	const struct listeners *listeners; /* where clients come from */
	int passed; /* a socket to serve on whatever the settings say; -1: none */
	struct http *http; /* NULL: switched off */
	char *addresses; /* where it listens */
	int port;
	usec_t started; /* the process: wall clock */
	struct loop_task writing; /* queued while there is somebody to write for */
	struct metric_page page;
	bool is_writing;
	struct http_request
		*waiting[HTTP_REQUESTS]; /* for a page; first those of the one under way */
	unsigned waiting_count, served_count; /* and of them, those that it is written for */
	struct metrics_page *newest; /* finished last; NULL: gone */
	unsigned pages; /* finished and still being read */
	uint64_t requests[METRICS_PATHS][METRICS_CODES];
};

/*
 * Nothing is opened yet. The metrics must stay where they are for as long as the loop is there. A
 * socket that was passed (else -1) is served on, and where settings would have it is not.
 */
void metrics_init(struct metrics *metrics, struct registry *registry,
	const struct listeners *listeners, int passed);

/*
 * Do as the settings in force say: listen, listen elsewhere, stop, or nothing if that is how it is.
 * False, and the reason in `why`, when the place cannot be had: then it listens where it did.
 */
bool metrics_follow(struct metrics *metrics, char *why, size_t size);

/* To be called a few times a second. */
static inline void metrics_upkeep(const struct metrics *metrics)
{
	if (metrics->http)
		http_upkeep(metrics->http);
}

/* Stop: whoever waits is told that there is nothing more. */
void metrics_close(struct metrics *metrics);

#endif
