/* SPDX-License-Identifier: ISC */
#include "admin/metrics/probes.h"

#include <stdio.h>
#include <string.h>

const char *const probes_paths[PROBES_PATHS] = {
	"metrics", "healthz", "readyz", "page", "api", "other"};
const int probes_codes[PROBES_CODES] = {200, 401, 404, 405, 421, 429, 503};

static const char plain[] = "text/plain; charset=utf-8";

unsigned probes_path_of(const char *path)
{
	static const struct {
		const char *path;
		unsigned counted;
	} paths[] = {
		{"/metrics", 0},
		{"/healthz", 1},
		{"/readyz", 2},
		{"/", 3},
		{"/page.css", 3},
		{"/page.js", 3},
		{"/icon.svg", 3},
		{"/api/state", 4},
		{"/api/history", 4},
	};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (strcmp(path, paths[i].path) == 0)
			return paths[i].counted;
	}
	return PROBES_PATHS - 1;
}

/* Why new clients should connect elsewhere; NULL: they are accepted. */
static const char *why_not_ready(
	const struct registry *registry, const struct listeners *listeners)
{
	static const char *const operations[] = {
		[OPERATION_RUNNING] = NULL,
		[OPERATION_PAUSED] = "paused",
		[OPERATION_SUSPENDED] = "suspended",
	};

	if (registry->process->shutdown != SHUTDOWN_NONE)
		return "shutting down";
	if (operations[registry->process->operation])
		return operations[registry->process->operation];
	if (!listeners_next(listeners, NULL) || listeners->paused)
		return "not listening";
	return listeners->resting ? "not accepting clients: out of descriptors" : NULL;
}

static void answer_ready(struct http_request *request, const char *why)
{
	char line[256];

	snprintf(line, sizeof(line), "%s\n", why ? why : "ready");
	http_reply_text(request, why ? 503 : 200, plain, line);
}

void probes_answer(struct http_request *request, struct registry *registry,
	const struct listeners *listeners)
{
	const char *path = http_path(request);

	if (strcmp(path, "/healthz") == 0)
		http_reply_text(request, 200, plain, "ok\n");
	else if (strcmp(path, "/readyz") == 0)
		answer_ready(request, why_not_ready(registry, listeners));
	else
		http_reply_text(request, 404, plain, "no such page\n");
}
