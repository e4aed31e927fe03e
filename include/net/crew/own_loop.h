/* SPDX-License-Identifier: ISC */
/*
 * Which thread runs: what belongs to a loop is used by the thread of that loop only
 * (net/crew/crew).
 *
 * Builds with sanitizers check this where objects of a loop change. Other builds do not: the check is
 * on the path of each transaction.
 */
#ifndef PGUSHER_NET_CREW_OWN_LOOP_H
#define PGUSHER_NET_CREW_OWN_LOOP_H

#include <stdbool.h>

#include "base/check.h"

struct crew_member;
struct loop;

/* Which member the calling thread is; NULL: none of a running crew. Written by net/crew only. */
extern _Thread_local struct crew_member *crew_here;

/*
 * Whether the calling thread may use this loop now: it is the loop's thread, or the main thread
 * in stillness, or no threads are running. NULL: no loop, which any thread may use. For
 * CHECK(): this is cheap.
 */
bool crew_is_own(const struct loop *loop);

/* Defined by configure --enable-sanitizers and --enable-thread-sanitizer. */
#ifdef PGUSHER_CHECK_LOOPS
#define OWN_LOOP(loop) CHECK(crew_is_own(loop))
#else
#define OWN_LOOP(loop) ((void)0)
#endif

#endif
