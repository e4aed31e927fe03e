/* SPDX-License-Identifier: ISC */
/*
 * One-time setup of the process at start: descriptors, background, memory.
 */
#ifndef PGUSHER_DAEMON_PROCESS_H
#define PGUSHER_DAEMON_PROCESS_H

#include <stdbool.h>

/*
 * Open /dev/null in place of a closed stdin, stdout or stderr. Otherwise a connection could get
 * one of their numbers, and with it the output that is meant for stderr.
 */
void process_fill_descriptors(void);

/*
 * Prepare signals and malloc for tens of thousands of small connections over months. Call it
 * before the first allocation.
 */
void process_tune(void);

/*
 * Go to the background. Only the background process returns, with true; it has no terminal, and
 * its stdin, stdout and stderr are /dev/null. Returns false with errno on failure. Call it
 * before any thread is started and before random bytes are drawn.
 */
bool process_go_background(void);

#endif
