/* SPDX-License-Identifier: ISC */
/* The full-screen program: keys, signals and the console in one loop. */
#ifndef PGUSHER_TOP_LIVE_H
#define PGUSHER_TOP_LIVE_H

#include "top/session.h"

/* Run until the operator quits, a signal ends it, or the terminal is gone. Returns the exit status. */
int live_run(struct session *session);

#endif
