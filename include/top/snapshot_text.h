/* SPDX-License-Identifier: ISC */
/* The program without a screen: snapshots as text, one of them or one after another. */
#ifndef PGUSHER_TOP_SNAPSHOT_TEXT_H
#define PGUSHER_TOP_SNAPSHOT_TEXT_H

#include "top/session.h"

/*
 * Print a snapshot to stdout, as wide as COLUMNS says, by default 80; again and again if `repeat`.
 * Rates need two answers, so that each takes an interval. Returns the exit status: 2 if the console
 * cannot be reached.
 */
int snapshot_text_run(struct session *session, bool repeat);

#endif
