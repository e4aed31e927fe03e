/* SPDX-License-Identifier: ISC */
/*
 * What the files of net/crew/crew share; private to them. crew_mail.c sends and delivers mail,
 * crew_figures.c counts, asks and pins, own_loop.c knows the threads, crew.c runs and stops them.
 */
#ifndef PGUSHER_NET_CREW_CREW_PARTS_H
#define PGUSHER_NET_CREW_CREW_PARTS_H

#include <event2/util.h>

#include "net/crew/crew.h"

struct ping {
	struct mail mail;
	atomic_bool answered; /* the mail is not in a mailbox */
};

/* A loop and its thread, in a crew of several. */
struct crew_member {
	struct crew *crew;
	struct loop *loop;
	unsigned index;
	int wake; /* eventfd: written by senders of mail when the loop is asleep */
	struct event *event;
	struct ping ping;
	pthread_t thread; /* valid if has_thread */
	bool has_thread;
	int id; /* of the thread, for the kernel; written by itself; 0: that of the main thread */
	/* The following are written by this thread only, and read by it or in stillness. */
	uint64_t wake_ups, stops;
	usec_t parked_time; /* of all stops that have ended */
	usec_t parked_since; /* on the monotonic clock; 0: not parked */
	usec_t busy; /* processor time of a thread that has ended */
};

/* --- src/net/crew/crew_mail.c ------------------------------------------------------------- */

/*
 * Deliver the mail that a loop has now; what is sent meanwhile is left for the next call.
 * Returns whether there was any.
 */
bool crew_deliver(struct loop *loop);

/* Deliver it in this turn, after the events: tasks that deliveries queue run in this turn too. */
void crew_queue_delivery(struct loop *loop);

/* Wake the loop if it is asleep. After a store that it looks at: see mailbox_rouse(). */
void crew_rouse(struct loop *loop);

/* The descriptor by which others wake a loop is readable; the argument is the member. */
void crew_on_wake(evutil_socket_t fd, short what, void *argument);

#endif
