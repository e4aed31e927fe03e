/* SPDX-License-Identifier: ISC */
/*
 * One sentence on what holds the clients up: what the pool with the longest wait tells, and which
 * client holds its servers. Beside it the most severe advice of a pooler that has SHOW ADVICE; of a
 * full pool that has an open transaction too, the advice on the pool.
 */
#ifndef PGUSHER_TOP_VERDICT_H
#define PGUSHER_TOP_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "top/feed.h"
#include "top/holds.h"
#include "top/page.h"

enum { VERDICT_SIZE = 1024 };

struct verdict {
	char text[VERDICT_SIZE]; /* "": nothing waits */
	enum page_style style;
};

/* Make the sentence of the last answers, about the pool with the longest wait. */
void verdict_write(struct verdict *verdict, const struct feed *feed, const struct holds *holds);

/* Take this advice, if it is a warning at least. */
void verdict_take_advice(struct verdict *verdict, const struct feed *feed);

/*
 * The SHOWs that would tell more: those that say which clients hold the servers, while clients wait
 * and the answers are short.
 */
unsigned verdict_topics(const struct feed *feed);

#endif
