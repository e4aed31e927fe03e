/* SPDX-License-Identifier: ISC */
/* The state of a handoff, for the modules of notify only: see notify/handoff. */
#ifndef PGUSHER_SESSION_NOTIFY_HANDOFF_STATE_H
#define PGUSHER_SESSION_NOTIFY_HANDOFF_STATE_H

#include "session/notify/channels.h"

enum { HANDOFF_TOKEN_SIZE = 24 };

struct handoff {
	TAILQ_ENTRY(handoff) in_hub;
	struct channel_hub *hub;
	struct server_link *server; /* that still listens; NULL: it does so no more */
	struct channel_listener *listener; /* NULL: its client is gone */
	struct notification_queue late; /* came by the listening server, behind the token */
	usec_t since;
	char token[HANDOFF_TOKEN_SIZE];
	bool begun; /* the token was sent */
	bool marked_there,
		marked_here; /* it has come back: by the server, by the listening one */
	uint8_t answers; /* ReadyForQuery that the server owes us */
	bool error; /* the server has sent an ErrorResponse */
};

#endif
