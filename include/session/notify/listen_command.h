/* SPDX-License-Identifier: ISC */
/*
 * LISTEN and UNLISTEN of an idle client, as a simple query by itself: answered here when the listening
 * server of the pool listens, without a server of the client's own. The client is held until then.
 */
#ifndef PGUSHER_SESSION_NOTIFY_LISTEN_COMMAND_H
#define PGUSHER_SESSION_NOTIFY_LISTEN_COMMAND_H

#include "session/relay/relay.h"
#include "wire/frame.h"

/*
 * Returns whether the Query at run.at may begin with LISTEN or UNLISTEN. One that begins with a blank
 * or a comment is left to a server: this is called for every query. The first byte of the text may not
 * have arrived, with a tiny pkt_buf; then that of an older message is looked at, which is as good.
 */
static inline bool listen_command_may_be(const struct relay_run *run)
{
	const uint32_t letters = 1u << ('l' & 31) | 1u << ('u' & 31);

	return run->frame.total > FRAME_HEADER_SIZE &&
		letters >> (run->at[FRAME_HEADER_SIZE] & 31) & 1;
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
