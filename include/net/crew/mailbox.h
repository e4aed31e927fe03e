/* SPDX-License-Identifier: ISC */
/*
 * The mailbox of a loop: many threads put mail into it, the thread of the loop takes it out.
 *
 * There is no lock. Putting is one exchange of a pointer; taking takes all mail at once. Mail
 * of one sender stays in order. The mailbox also knows whether its loop may be asleep: only then
 * a sender pays for waking it, and of several senders only the first. net/crew/crew wakes the
 * loop and delivers the mail.
 */
#ifndef PGUSHER_NET_CREW_MAILBOX_H
#define PGUSHER_NET_CREW_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct mail;

typedef void mail_function(struct mail *mail, struct loop *loop);

/*
 * A message to a loop, embedded in an object of the sender, which belongs to the receiver from
 * the moment it is put. deliver() is called once, after the mail has left the mailbox: it may
 * free the object or send it on.
 */
struct mail {
	struct mail *next;
	mail_function *deliver;
};

/* Empty when all zero. */
struct mailbox {
	_Atomic(struct mail *) newest; /* not yet taken; linked from the newest to the oldest */
	/* The loop waits for events or handles those that came: a sender must wake it. */
	atomic_bool asleep;
	/* The following are used by the reader only. */
	struct mail *taken; /* to be delivered; linked from the oldest to the newest */
	uint64_t received; /* number of mails that mailbox_next() has returned */
};

/* Put mail into the mailbox. From any thread. */
void mailbox_put(struct mailbox *mailbox, struct mail *mail);

/*
 * After mailbox_put(), or after another store that the loop looks at before it sleeps, with
 * sequentially consistent order: returns true if the caller must wake the loop. Of several
 * callers one gets true, until the loop falls asleep again. From any thread.
 */
static inline bool mailbox_rouse(struct mailbox *mailbox)
{
	/*
	 * The load is sequentially consistent, as are the caller's store before it and the two
	 * operations of the reader (mailbox_fall_asleep()): either this load sees that the loop
	 * is asleep, or the loop sees the mail. With release and acquire both could miss it.
	 * They are no fences, because ThreadSanitizer does not know fences. The exchange only
	 * decides which sender wakes the loop.
	 */
	return atomic_load(&mailbox->asleep) &&
		atomic_exchange_explicit(&mailbox->asleep, false, memory_order_relaxed);
}

/* Whether there is mail to take. */
static inline bool mailbox_has_new(const struct mailbox *mailbox)
{
	/* Sequentially consistent: see mailbox_rouse(). */
	return atomic_load(&mailbox->newest) != NULL;
}

/*
 * From now on senders wake the loop. Afterwards the reader must look once more, with
 * mailbox_has_new(), before it waits for events.
 */
static inline void mailbox_fall_asleep(struct mailbox *mailbox)
{
	/* Sequentially consistent: see mailbox_rouse(). */
	atomic_store(&mailbox->asleep, true);
}

/* From now on senders need not wake the loop: the reader looks at the mailbox by itself. */
static inline void mailbox_set_awake(struct mailbox *mailbox)
{
	/* Relaxed: a sender that still sees `asleep` wakes a loop that is awake, no more. */
	atomic_store_explicit(&mailbox->asleep, false, memory_order_relaxed);
}

/* Take all new mail out, behind what is taken already and not delivered. */
void mailbox_take(struct mailbox *mailbox);

/* Returns the next mail to be delivered, and forgets it; NULL: none of those taken is left. */
struct mail *mailbox_next(struct mailbox *mailbox);

#endif
