/* SPDX-License-Identifier: ISC */
#include "top/holds.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "top/ages.h"

enum { HANDLE_SIZE = 40 };

/* A client that has a server. */
struct hold {
	char client[HANDLE_SIZE], server[HANDLE_SIZE];
	double wait; /* of the query, in seconds; 0: none runs */
	usec_t first, last; /* when the query was seen at the server */
};

void holds_free(struct holds *holds)
{
	free(holds->list);
	*holds = (struct holds){0};
}

static int by_client(const void *left, const void *right)
{
	return strcmp(
		((const struct hold *)left)->client, ((const struct hold *)right)->client);
}

static const struct hold *find(const struct holds *holds, const char *client)
{
	struct hold wanted;

	if (holds->count == 0 || !text_copy(wanted.client, sizeof(wanted.client), client))
		return NULL;
	return bsearch(&wanted, holds->list, holds->count, sizeof(wanted), by_client);
}

/* The same query at the same server: its time has grown, by half of what has passed at least. */
static bool goes_on(const struct hold *before, const struct hold *hold)
{
	const double passed = (double)(hold->last - before->last) / USEC_PER_SEC;

	return strcmp(before->server, hold->server) == 0 && before->wait > 0 &&
		hold->wait >= before->wait + passed / 2;
}

static bool read_row(struct hold *hold, const struct table *clients, size_t row,
	const size_t columns[4], usec_t now)
{
	const char *client = table_text(clients, row, columns[0]),
		   *server = table_text(clients, row, columns[1]);

	hold->wait = ages_wait(clients, row, columns[2], columns[3]);
	hold->first = hold->last = now;
	return client && server && server[0] && hold->wait > 0 &&
		text_copy(hold->client, sizeof(hold->client), client) &&
		text_copy(hold->server, sizeof(hold->server), server);
}

void holds_take(struct holds *holds, const struct table *clients, usec_t now)
{
	const size_t columns[] = {table_column(clients, "ptr"), table_column(clients, "link"),
		table_column(clients, "wait"), table_column(clients, "wait_us")};
	struct hold *list = calloc(clients->row_count + 1, sizeof(*list));
	size_t count = 0;

	for (size_t row = 0; list && row < clients->row_count; row++) {
		const struct hold *before;

		if (!read_row(&list[count], clients, row, columns, now))
			continue;
		before = find(holds, list[count].client);
		if (before && goes_on(before, &list[count]))
			list[count].first = before->first;
		count++;
	}
	if (list)
		qsort(list, count, sizeof(*list), by_client);
	free(holds->list);
	holds->list = list;
	holds->count = count;
}

double holds_find(const struct holds *holds, const char *client)
{
	const struct hold *hold = find(holds, client);

	return hold ? (double)(hold->last - hold->first) / USEC_PER_SEC : 0;
}
