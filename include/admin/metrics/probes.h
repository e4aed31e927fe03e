/* SPDX-License-Identifier: ISC */
/*
 * The pages that say how we are: /healthz while the loop turns, /readyz while clients are welcome,
 * and a page with links.
 */
#ifndef PGUSHER_ADMIN_METRICS_PROBES_H
#define PGUSHER_ADMIN_METRICS_PROBES_H

#include "model/registry.h"
#include "net/http.h"
#include "net/listener.h"

/* Answer a request for any page but the metrics; clients come in by these listeners. */
void probes_answer(struct http_request *request, struct registry *registry,
	const struct listeners *listeners);

#endif
