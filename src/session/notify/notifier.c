/* SPDX-License-Identifier: ISC */
#include "session/notify/notifier.h"

#include <arpa/inet.h>
#include <string.h>

#include "wire/reader.h"

bool notifier_read(const struct relay_run *run, struct notifier_message *out)
{
	size_t length;
	const uint8_t *body = relay_body(run, &length);
	struct reader reader;

	reader_init(&reader, body, length);
	out->pid = reader_int32(&reader);
	out->channel = reader_string(&reader);
	out->payload = reader_string(&reader);
	return reader_done(&reader);
}

void notifier_write_pid(uint8_t *front, const struct relay_run *run, uint32_t pid)
{
	const uint32_t told = htonl(backends_client_pid(run->server, pid));

	memcpy(front, run->at, NOTIFIER_FRONT);
	memcpy(front + NOTIFIER_FRONT - sizeof(told), &told, sizeof(told));
}

struct notification *notifier_message_for_clients(const struct relay_run *run, uint32_t pid)
{
	struct notification *notification = notification_new(run->at, run->frame.total);

	if (notification)
		notifier_write_pid(notification->bytes, run, pid);
	return notification;
}
