/* SPDX-License-Identifier: ISC */
#include "session/relay/query_clocks.h"

void query_clocks_log(const struct client_link *client, bool ends_transaction, usec_t now)
{
	if (client->query_start)
		link_log(&client->link, LEVEL_DEBUG, "query time: %lld us",
			(long long)(now - client->query_start));
	if (ends_transaction && client->transaction_start)
		link_log(&client->link, LEVEL_DEBUG, "transaction time: %lld us",
			(long long)(now - client->transaction_start));
}
