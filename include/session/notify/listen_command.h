/* SPDX-License-Identifier: ISC */
/*
 * LISTEN and UNLISTEN of an idle client, as a simple query by itself: answered here when the listening
 * server of the pool listens, without a server of the client's own. The client is held until then.
 */
#ifndef PGUSHER_SESSION_NOTIFY_LISTEN_COMMAND_H
#define PGUSHER_SESSION_NOTIFY_LISTEN_COMMAND_H

#include "session/relay/relay.h"
#include "wire/frame.h"

/* Returns whether the Query at run.at may begin with LISTEN or UNLISTEN, a blank or a comment. */
static inline bool listen_command_may_be(const struct relay_run *run)
{
	const uint8_t *text = run->at + FRAME_HEADER_SIZE;
	uint8_t first;

	if (run->end - text < 2)
		return false;
	first = text[0] | 0x20;
	return first == 'l' || (first == 'u' && (text[1] | 0x20) == 'n') || text[0] <= '/';
}

/*
 * Judge such a Query of an idle client. Returns RELAY_PASS if it is nothing that can be answered here:
 * it needs a server, as any query.
 */
enum verdict listen_command_judge(struct relay_run *run);

/*
 * The client waits no more for the end of its LISTEN, which ends with an error: it does not listen on
 * that channel.
 */
void listen_command_withdraw(struct client_link *client);

#endif
