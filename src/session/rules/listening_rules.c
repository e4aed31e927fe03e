/* SPDX-License-Identifier: ISC */
/* Judges the messages of the listening server of a pool: see notify/listening_server. */
#include "session/notify/listening_server.h"
#include "session/relay/relay_rules.h"
#include "wire/message.h"

static enum verdict judge_notification(struct relay_run *run)
{
	struct notifier_message message;

	if (!run->whole || !notifier_read(run, &message))
		return relay_fail(run, failure_of(REASON_UNKNOWN_SERVER_PKT));
	run->own_done = true;
	return listening_server_take_notification(run, &message)
		? RELAY_DROP
		: relay_fail(run, failure_of(REASON_NO_MEMORY));
}

static enum verdict judge_error(struct relay_run *run)
{
	struct channel_hub *hub = run->server->link.pool->hub;

	if (!run->whole)
		return relay_fail(run, failure_of(REASON_UNKNOWN_SERVER_PKT));
	return listening_server_take_error(hub, run->at, run->frame.total)
		? RELAY_DROP
		: relay_fail(run, failure_of(REASON_NO_MEMORY));
}

static enum verdict judge_ready(struct relay_run *run)
{
	if (relay_ready_status(run) != READY_IDLE ||
		!listening_server_take_ready(run->server->link.pool->hub))
		return relay_fail(run, failure_of(REASON_UNKNOWN_SERVER_PKT));
	run->own_done = true;
	return RELAY_DROP;
}

static enum verdict judge_unexpected(struct relay_run *run)
{
	return relay_fail(run, failure_of(REASON_UNKNOWN_SERVER_PKT));
}

#pragma GCC diagnostic ignored "-Woverride-init"

const struct relay_rule relay_listening_server[RELAY_TYPES] = {
	RELAY_EVERY(judge_unexpected),
	[PQ_NOTIFICATION_RESPONSE] = {judge_notification, .whole = true},
	[PQ_COMMAND_COMPLETE] = {relay_drop_own},
	[PQ_NOTICE_RESPONSE] = {relay_drop_own},
	[PQ_ERROR_RESPONSE] = {judge_error, .whole = true},
	[PQ_PARAMETER_STATUS] = {relay_judge_own_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_ready, .whole = true},
};
