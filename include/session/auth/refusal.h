/* SPDX-License-Identifier: ISC */
/*
 * Refusals that are sent no earlier than a certain time. Without that the time of a refusal
 * would show whether a user exists, or of which kind its secret is. The delay costs no CPU
 * time, so that attackers gain nothing by causing it.
 */
#ifndef PGUSHER_SESSION_AUTH_REFUSAL_H
#define PGUSHER_SESSION_AUTH_REFUSAL_H

#include "session/auth/method.h"

/*
 * Refuse the client for the method's reason at this time of the loop, or at once if the time
 * has passed. Returns AUTH_PENDING if the refusal is delayed, else AUTH_REFUSED.
 */
enum auth_result refusal_at(struct client_link *client, usec_t time);

/* Is a delayed refusal pending? */
bool refusal_is_pending(const struct login *login);

/* Cancel the delayed refusal, if there is one: the login ends. */
void refusal_cancel(struct login *login);

#endif
