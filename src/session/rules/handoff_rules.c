/* SPDX-License-Identifier: ISC */
/* Judges the messages of a server that hands its channels over: see notify/handoff. */
#include "session/notify/handoff.h"
#include "session/relay/relay_rules.h"
#include "wire/message.h"

static enum verdict judge_notification(struct relay_run *run)
{
	struct notifier_message message;

	if (!run->whole || !notifier_read(run, &message))
		return relay_fail(run, failure_of(REASON_UNKNOWN_SERVER_PKT));
	handoff_take_notification(run, &message);
	return RELAY_DROP;
}

static enum verdict judge_error(struct relay_run *run)
{
	handoff_take_error(run->server);
	return RELAY_DROP;
}

static enum verdict judge_ready(struct relay_run *run)
{
	const char status = relay_ready_status(run);
	bool last;

	if (!status || !handoff_take_ready(run->server, &last))
		return relay_fail(run, failure_of(REASON_BAD_PKT_HEADER));
	return last ? relay_end_own(run, status) : RELAY_DROP;
}

#pragma GCC diagnostic ignored "-Woverride-init"

const struct relay_rule relay_handoff_server[RELAY_TYPES] = {
	RELAY_EVERY(relay_drop_own),
	[PQ_NOTIFICATION_RESPONSE] = {judge_notification, .whole = true},
	[PQ_ERROR_RESPONSE] = {judge_error},
	[PQ_PARAMETER_STATUS] = {relay_judge_own_parameter, .whole = true},
	[PQ_READY_FOR_QUERY] = {judge_ready, .whole = true},
};
