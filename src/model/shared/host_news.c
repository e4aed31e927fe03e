/* SPDX-License-Identifier: ISC */
#include "model/shared/host_news.h"

#include <stdlib.h>
#include <string.h>

/* To one worker. */
struct news_mail {
	struct mail mail; /* first: deliver() gets this */
	host_news_function *take;
	struct host_news news;
	struct address address; /* of a name; AF_UNSPEC otherwise */
	uint16_t port;
	char name[];
};

static struct host *find_host(struct registry *registry, const struct news_mail *sent)
{
	const struct host_item item = {sent->name, strlen(sent->name), sent->port};

	return sent->address.family == AF_UNSPEC
		? hosts_open(&registry->hosts, &item, NULL)
		: hosts_find(&registry->hosts, &item, &sent->address);
}

static void deliver(struct mail *mail, struct loop *loop)
{
	struct news_mail *sent = (struct news_mail *)mail;
	struct registry *registry = loop->owner;
	struct host *host = find_host(registry, sent);

	if (host)
		sent->take(registry, host, &sent->news);
	free(sent);
}

static struct host_news news_of(const struct registry *registry, const struct host *host)
{
	struct host_news news = {
		.at = loop_now(registry->loop),
		.role = host->role,
		.told_by = host->told_by,
		.read_only = host->read_only,
		.system = host->system,
		.timeline = host->timeline,
		.failed_since = host->failed_since,
		.next_try = host->next_try,
		.failures = host->failures,
	};

	memcpy(news.error, host->error, sizeof(news.error));
	return news;
}

static void send_to(const struct registry *registry, const struct host *host,
	const struct news_mail *contents)
{
	const size_t length = strlen(host->name);
	struct news_mail *sent = malloc(sizeof(*sent) + length + 1);

	if (!sent)
		return;
	*sent = *contents;
	memcpy(sent->name, host->name, length + 1);
	crew_post(registry->loop, &sent->mail);
}

static void send_to_others(
	const struct registry *registry, const struct host *host, host_news_function *take)
{
	const struct news_mail contents = {
		.mail = {.deliver = deliver},
		.take = take,
		.news = news_of(registry, host),
		.address = host->address,
		.port = host->port,
	};
	const struct registry *each;

	EACH_REGISTRY (each, registry->process) {
		if (each != registry)
			send_to(each, host, &contents);
	}
}

void host_news_send(
	const struct registry *registry, const struct host *host, host_news_function *take)
{
	if (registry->process->workers > 1 && !host->is_name)
		send_to_others(registry, host, take);
}
