/* SPDX-License-Identifier: ISC */
/*
 * The pages for health checks: /healthz succeeds while the event loop runs, /readyz while
 * clients are accepted; and how the endpoint counts its answers.
 */
#ifndef PGUSHER_ADMIN_METRICS_PROBES_H
#define PGUSHER_ADMIN_METRICS_PROBES_H

#include "model/registry.h"
#include "net/http/http.h"
#include "net/listener.h"

/*
 * The paths and status codes by which the endpoint counts its answers; any other path or code
 * counts as the last one.
 */
enum { PROBES_PATHS = 6, PROBES_CODES = 7 };
extern const char *const probes_paths[PROBES_PATHS];
extern const int probes_codes[PROBES_CODES];

/* Returns which of probes_paths counts a path. */
unsigned probes_path_of(const char *path);

/* Answer a request for any path but /metrics and those of the page. `listeners` are those of clients. */
void probes_answer(struct http_request *request, struct registry *registry,
	const struct listeners *listeners);

#endif
