/* SPDX-License-Identifier: ISC */
/*
 * What the operating system is asked for once, at the start: descriptors, background, memory.
 */
#ifndef PGUSHER_DAEMON_PROCESS_H
#define PGUSHER_DAEMON_PROCESS_H

#include <stdbool.h>

/*
 * Open what is missing of stdin, stdout and stderr, so that no connection ever gets one of their
 * numbers and with it what is meant for stderr.
 */
void process_fill_descriptors(void);

/* Fit it for tens of thousands of small connections over months. Before anything is allocated. */
void process_tune(void);

/*
 * Go to the background: only the process that stays returns, with true, stdin, stdout and stderr
 * on /dev/null and no terminal. False with errno when that failed. No thread may have been
 * started before, and no random bytes drawn.
 */
bool process_go_background(void);

#endif
