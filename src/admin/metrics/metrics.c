/* SPDX-License-Identifier: ISC */
#include "admin/metrics/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/metrics/metric_sources.h"
#include "base/log.h"
#include "base/text.h"
#include "model/statistics/history.h"
#include "net/address.h"

/* Lines written in one turn of the loop; takes about 50 microseconds. */
enum { LINES_PER_TURN = 500 };

struct metrics_page {
	struct metrics *metrics;
	struct buffer text;
	enum metric_format format;
	unsigned readers;
};

/* --- finished pages ----------------------------------------------------------------------- */

static void release(void *owner)
{
	struct metrics_page *page = owner;

	if (--page->readers > 0)
		return;
	page->metrics->pages--;
	if (page->metrics->newest == page)
		page->metrics->newest = NULL;
	buffer_free(&page->text);
	free(page);
}

static void send_page(struct http_request *request, struct metrics_page *page)
{
	const struct http_answer answer = {
		.code = 200,
		.type = metric_format_type(page->format),
		.body = (const char *)page->text.data,
		.length = page->text.length,
		.release = release,
		.owner = page,
	};

	page->readers++;
	http_reply(request, &answer);
}

static void send_refusal(struct http_request *request, const char *why)
{
	http_reply_text(request, 503, "text/plain; charset=utf-8", why);
}

/* Make a finished page of the page that was written. Returns NULL when out of memory. */
static struct metrics_page *finish(struct metrics *metrics)
{
	struct metrics_page *page = NULL;

	if (!metrics->page.out.failed)
		page = malloc(sizeof(*page));
	if (page) {
		*page = (struct metrics_page){
			.metrics = metrics,
			.text = metrics->page.out,
			.format = metrics->page.format,
		};
		metrics->page.out = (struct buffer){0};
		metrics->pages++;
		metrics->newest = page;
	}
	metric_page_free(&metrics->page);
	metrics->is_writing = false;
	return page;
}

/* --- writing ------------------------------------------------------------------------------ */

static enum metric_format format_for(const struct http_request *request)
{
	return metric_format_of(http_header(request, "Accept"));
}

/* Move the requests for this format to the front of the queue and count them. */
static void put_in_front(struct metrics *metrics, enum metric_format format)
{
	unsigned front = 0;

	for (unsigned i = 0; i < metrics->waiting_count; i++) {
		struct http_request *request = metrics->waiting[i];

		if (format_for(request) != format)
			continue;
		metrics->waiting[i] = metrics->waiting[front];
		metrics->waiting[front++] = request;
	}
	metrics->served_count = front;
}

/* Answer the requests that the page was written for; `page` is NULL when out of memory. */
static void serve(struct metrics *metrics, struct metrics_page *page)
{
	const unsigned count = metrics->served_count;

	if (page)
		page->readers++; /* keeps the page until all requests have it */
	for (unsigned i = 0; i < count; i++) {
		if (page)
			send_page(metrics->waiting[i], page);
		else
			send_refusal(metrics->waiting[i], "out of memory\n");
	}
	metrics->waiting_count -= count;
	metrics->served_count = 0;
	memmove(metrics->waiting, metrics->waiting + count,
		metrics->waiting_count * sizeof(metrics->waiting[0]));
	if (page)
		release(page);
}

static void begin_page(struct metrics *metrics)
{
	const enum metric_format format = format_for(metrics->waiting[0]);

	put_in_front(metrics, format);
	if (metrics->pages >= METRICS_PAGES && metrics->newest &&
		metrics->newest->format == format) {
		serve(metrics, metrics->newest);
		return;
	}
	metric_page_begin(&metrics->page, format, metrics->registry, metrics);
	metrics->is_writing = true;
}

static void on_turn(struct loop_task *task)
{
	struct metrics *metrics =
		(struct metrics *)((char *)task - offsetof(struct metrics, writing));

	process_stop_others(metrics->registry->process);
	if (!metrics->is_writing)
		begin_page(metrics);
	else if (!metric_page_write(&metrics->page, LINES_PER_TURN))
		serve(metrics, finish(metrics));
	process_let_others_run(metrics->registry->process);
	if (metrics->waiting_count > 0)
		loop_defer_work(metrics->registry->loop, &metrics->writing, on_turn);
}

/* There is room in the queue: net/http/http refuses more than HTTP_REQUESTS requests. */
static void answer_metrics(struct metrics *metrics, struct http_request *request)
{
	metrics->waiting[metrics->waiting_count++] = request;
	loop_defer_work(metrics->registry->loop, &metrics->writing, on_turn);
}

/* --- requests ----------------------------------------------------------------------------- */

static void on_asked(void *context, struct http_request *request)
{
	struct metrics *metrics = context;

	if (strcmp(http_path(request), "/metrics") == 0) {
		answer_metrics(metrics, request);
		return;
	}
	process_stop_others(metrics->registry->process);
	if (!metrics->site.answer || !metrics->site.answer(metrics->site.context, request))
		probes_answer(request, metrics->registry, metrics->listeners);
	process_let_others_run(metrics->registry->process);
}

static void on_replied(void *context, const char *path, int code)
{
	struct metrics *metrics = context;
	const unsigned row = probes_path_of(path);
	unsigned column = 0;

	while (column < PROBES_CODES - 1 && code != probes_codes[column])
		column++;
	metrics->requests[row][column]++;
}

/*
 * Nothing is run, loaded or shown elsewhere because of what a name in a response says; and
 * responses are not guessed to be of another type.
 */
static const struct http_header headers[] = {
	{"Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
		"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{0},
};

static bool wants_tls(void *context, struct tls_context **out)
{
	const struct metrics *metrics = context;
	const struct process *process = metrics->registry->process;

	*out = process->metrics_tls;
	return process->settings->metrics_tls;
}

/* --- where it listens --------------------------------------------------------------------- */

void metrics_init(struct metrics *metrics, struct registry *registry,
	const struct listeners *listeners, int passed, const struct metrics_site *site)
{
	*metrics = (struct metrics){
		.registry = registry,
		.listeners = listeners,
		.passed = passed,
		.site = site ? *site : (struct metrics_site){0},
		.started = metric_process_start(),
	};
}

static bool open_at(
	struct metrics *metrics, const char *addresses, int port, char *why, size_t size)
{
	const struct http_options options = {
		.addresses = addresses,
		.port = port,
		.socket = metrics->passed,
		.headers = headers,
		.wants_tls = wants_tls,
		.asked = on_asked,
		.replied = on_replied,
		.context = metrics,
	};
	char *copy = strdup(addresses);

	snprintf(why, size, "no memory");
	if (copy)
		metrics->http = http_open(metrics->registry->loop, &options, why, size);
	if (!metrics->http) {
		free(copy);
		return false;
	}
	metrics->addresses = copy;
	metrics->port = port;
	if (metrics->passed >= 0)
		log_write(LEVEL_LOG, "serving metrics on a socket passed from service manager");
	else
		log_write(LEVEL_LOG, "serving metrics on %s port %d", addresses, port);
	return true;
}

/* All requests must be answered before the HTTP server is closed. */
static void stop(struct metrics *metrics)
{
	loop_forget(metrics->registry->loop, &metrics->writing);
	if (metrics->is_writing)
		metric_page_free(&metrics->page);
	metrics->is_writing = false;
	for (unsigned i = 0; i < metrics->waiting_count; i++)
		send_refusal(metrics->waiting[i], "closing\n");
	metrics->waiting_count = metrics->served_count = 0;
	if (metrics->site.stop)
		metrics->site.stop(metrics->site.context);
	http_close(metrics->http);
	free(metrics->addresses);
	metrics->http = NULL;
	metrics->addresses = NULL;
	metrics->port = 0;
}

static bool is_as_wanted(const struct metrics *metrics, const struct settings *settings)
{
	if (!metrics->http || settings->metrics_port == 0)
		return !metrics->http && settings->metrics_port == 0;
	return metrics->port == settings->metrics_port &&
		strcmp(metrics->addresses, settings->metrics_listen_addr) == 0;
}

/* The new address may overlap the old one: close the old one first, reopen it on failure. */
static bool move(
	struct metrics *metrics, const struct settings *settings, char *why, size_t size)
{
	char *addresses = metrics->addresses ? strdup(metrics->addresses) : NULL;
	const int port = metrics->port;
	char again[256];
	bool moved;

	stop(metrics);
	moved = open_at(
		metrics, settings->metrics_listen_addr, settings->metrics_port, why, size);
	if (!moved && addresses && !open_at(metrics, addresses, port, again, sizeof(again)))
		log_write(LEVEL_ERROR, "no metrics any more: %s", again);
	free(addresses);
	return moved;
}

/* --- the warning about passwords ---------------------------------------------------------- */

static bool is_on_this_machine(const char *address)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (inet_pton(AF_INET, address, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
	return inet_pton(AF_INET6, address, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* May others than programs of this machine connect? */
static bool is_reached_from_elsewhere(const struct metrics *metrics)
{
	const char *at = metrics->addresses;
	char item[128];

	if (metrics->passed >= 0) {
		const struct address local = address_local(metrics->passed);

		return !address_is_local(&local);
	}
	while (text_next_item(&at, TEXT_LIST_SEPARATORS, item, sizeof(item), NULL)) {
		if (!is_on_this_machine(item))
			return true;
	}
	return false;
}

/* Once, until the settings are different. */
static void warn_of_passwords_in_clear(struct metrics *metrics)
{
	const struct settings *settings = metrics->registry->process->settings;
	const bool in_clear = metrics->http && settings->page_password[0] != '\0' &&
		!settings->metrics_tls && is_reached_from_elsewhere(metrics);

	if (in_clear && !metrics->sends_passwords_in_clear)
		log_write(LEVEL_WARNING,
			"browsers send page_password unencrypted: metrics_listen_addr is not only "
			"this machine, and metrics_tls is off");
	metrics->sends_passwords_in_clear = in_clear;
}

static bool follow(struct metrics *metrics, char *why, size_t size)
{
	const struct settings *settings = metrics->registry->process->settings;

	if (metrics->passed >= 0)
		return metrics->http || open_at(metrics, "", 0, why, size);
	if (is_as_wanted(metrics, settings))
		return true;
	if (settings->metrics_port != 0)
		return move(metrics, settings, why, size);
	stop(metrics);
	return true;
}

/* The history is for the page: it is not kept without the endpoint. */
bool metrics_follow(struct metrics *metrics, char *why, size_t size)
{
	const bool followed = follow(metrics, why, size);

	if (!metrics->http)
		history_stop(metrics->registry);
	else if (!history_start(metrics->registry))
		log_write(LEVEL_WARNING, "no memory for the history of the metrics page");
	warn_of_passwords_in_clear(metrics);
	return followed;
}

void metrics_close(struct metrics *metrics)
{
	if (metrics->http)
		stop(metrics);
}
