/* SPDX-License-Identifier: ISC */
/*
 * NotificationResponse: reads it, and gives it the process number that clients know. Servers send the
 * number of the notifying session's backend; a client was told another one at its login, and finds out
 * by it which notifications are its own. Protocol: "Message Formats", NotificationResponse.
 */
#ifndef PGUSHER_SESSION_NOTIFY_NOTIFIER_H
#define PGUSHER_SESSION_NOTIFY_NOTIFIER_H

#include "session/notify/notification.h"
#include "session/relay/relay.h"

/* The letter, the length and the process number of the message. */
enum { NOTIFIER_FRONT = 9 };

struct notifier_message {
	uint32_t pid; /* of the backend */
	const char *channel, *payload; /* in the message */
};

/* Read the whole message of the run. Returns false if it is malformed. */
bool notifier_read(const struct relay_run *run, struct notifier_message *out);

/*
 * Write the front of the run's message, with the number that the client of this backend was told; 0
 * if it is not certain which client has notified.
 */
void notifier_write_pid(uint8_t *front, const struct relay_run *run, uint32_t pid);

/* As notifier_write_pid(): a copy of the run's message. Returns NULL when out of memory. */
struct notification *notifier_message_for_clients(const struct relay_run *run, uint32_t pid);

#endif
