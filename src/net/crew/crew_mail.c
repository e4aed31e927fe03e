/* SPDX-License-Identifier: ISC */
/* Mail from one loop to another. */
#include <stddef.h>
#include <unistd.h>

#include "base/log.h"
#include "net/crew/crew.h"
#include "net/crew/crew_parts.h"

bool crew_deliver(struct loop *loop)
{
	struct mail *mail;
	bool any = false;

	mailbox_take(&loop->mailbox);
	/* deliver() may call crew_still(), which delivers the rest of what is taken. */
	while ((mail = mailbox_next(&loop->mailbox)) != NULL) {
		mail->deliver(mail, loop);
		any = true;
	}
	return any;
}

static void deliver_in_turn(struct loop_task *task)
{
	crew_deliver((struct loop *)((char *)task - offsetof(struct loop, mail)));
}

void crew_queue_delivery(struct loop *loop)
{
	loop_defer_arrivals(loop, &loop->mail, deliver_in_turn);
}

void crew_on_wake(evutil_socket_t fd, short what, void *argument)
{
	struct crew_member *member = argument;
	uint64_t count;

	(void)what;
	/* A read that fails is a spurious event: crew_turn() looks for mail in any case. */
	if (read(fd, &count, sizeof(count)) < 0)
		return;
	member->wake_ups++;
	crew_queue_delivery(member->loop);
}

void crew_rouse(struct loop *loop)
{
	const uint64_t one = 1;

	if (mailbox_rouse(&loop->mailbox) && write(loop->member->wake, &one, sizeof(one)) < 0)
		log_write(LEVEL_ERROR, "a worker cannot be woken: %m");
}

void crew_post(struct loop *to, struct mail *mail)
{
	mailbox_put(&to->mailbox, mail);
	if (crew_is_own(to))
		crew_queue_delivery(to);
	else
		crew_rouse(to);
}
