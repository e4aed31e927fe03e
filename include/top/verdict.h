/* SPDX-License-Identifier: ISC */
/*
 * One sentence on what holds the clients up: the most severe advice of a pooler that has SHOW
 * ADVICE, otherwise what the pool with the longest wait tells.
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

/* Make the sentence of the last answers. */
void verdict_write(struct verdict *verdict, const struct feed *feed, const struct holds *holds);

/*
 * The SHOWs that would tell more: those that say who holds the servers, while clients wait and the
 * answers are short.
 */
unsigned verdict_topics(const struct feed *feed);

#endif
