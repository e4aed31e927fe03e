/* SPDX-License-Identifier: ISC */
#include "admin/page/page.h"

#include <string.h>

#include "admin/page/page_files.h"

void page_init(struct page *page, struct registry *registry)
{
	struct document_writer writer;

	page->registry = registry;
	page_guard_init(&page->guard, registry->loop);
	state_json_init(&page->state, registry);
	history_json_init(&page->history, registry);
	writer = state_json_writer(&page->state);
	shared_document_init(&page->state_document, registry, &writer);
	writer = history_json_writer(&page->history);
	shared_document_init(&page->history_document, registry, &writer);
}

/* --- answers ------------------------------------------------------------------------------ */

static void answer_state(struct page *page, struct http_request *request)
{
	/* A document with names must not be served after they are hidden, nor the reverse. */
	if (page->state.details != page->registry->process->settings->page_details)
		shared_document_forget(&page->state_document);
	shared_document_answer(&page->state_document, request);
}

static void answer_history(struct page *page, struct http_request *request)
{
	shared_document_answer(&page->history_document, request);
}

static void send_file(struct http_request *request, const char *name, const char *type)
{
	const struct page_file *file = page_files;

	while (file->name && strcmp(file->name, name) != 0)
		file++;
	http_reply(request,
		&(struct http_answer){
			.code = file->name ? 200 : 404,
			.type = type,
			.body = (const char *)file->bytes,
			.length = file->length,
		});
}

/* A path has either a file or a function. */
struct route {
	const char *path, *file, *type;
	void (*answer)(struct page *page, struct http_request *request);
};

static const struct route routes[] = {
	{"/", "page.html", "text/html; charset=utf-8"},
	{"/page.css", "page.css", "text/css; charset=utf-8"},
	{"/page.js", "page.js", "text/javascript; charset=utf-8"},
	{"/icon.svg", "icon.svg", "image/svg+xml"},
	{"/api/state", .answer = answer_state},
	{"/api/history", .answer = answer_history},
};

static const struct route *find_route(const char *path)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (strcmp(routes[i].path, path) == 0)
			return &routes[i];
	}
	return NULL;
}

static bool answer(void *context, struct http_request *request)
{
	struct page *page = context;
	const struct route *route = find_route(http_path(request));

	if (!route)
		return false;
	if (!page_guard_admits(&page->guard, request, page->registry->process->settings))
		return true;
	if (route->file)
		send_file(request, route->file, route->type);
	else
		route->answer(page, request);
	return true;
}

static void stop(void *context)
{
	struct page *page = context;

	page_guard_stop(&page->guard);
	shared_document_stop(&page->state_document);
	shared_document_stop(&page->history_document);
}

struct metrics_site page_site(struct page *page)
{
	return (struct metrics_site){answer, stop, page};
}
