/* SPDX-License-Identifier: ISC */
/*
 * The pages for health checks: /healthz succeeds while the event loop runs, /readyz while clients
 * are accepted; and a page with links.
 */
#ifndef PGUSHER_ADMIN_METRICS_PROBES_H
#define PGUSHER_ADMIN_METRICS_PROBES_H

#include "model/registry.h"
#include "net/http.h"
#include "net/listener.h"

/* Answer a request for any page but /metrics. `listeners` are those of clients. */
void probes_answer(struct http_request *request, struct registry *registry,
	const struct listeners *listeners);

#endif
