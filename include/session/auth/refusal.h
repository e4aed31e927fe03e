/* SPDX-License-Identifier: ISC */
/*
 * Refusals that are told no earlier than a certain time, where the time that they take would tell
 * what is known of a user. Waiting costs no CPU time, so it is nothing that attackers could use.
 */
#ifndef PGUSHER_SESSION_AUTH_REFUSAL_H
#define PGUSHER_SESSION_AUTH_REFUSAL_H

#include "session/auth/method.h"

/*
 * Refuse for the method's own reason at this time of the loop, at once if it is over. Meanwhile
 * the answer is pending.
 */
enum auth_result refusal_at(struct client_link *client, usec_t time);

/* Is a refusal yet to be told? */
bool refusal_is_held(const struct login *login);

/* The login ends before. */
void refusal_forget(struct login *login);

#endif
