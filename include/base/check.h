/* SPDX-License-Identifier: ISC */
/*
 * Assertions that are always compiled in: a failed one aborts the process.
 *
 * Use them at start-up and for states that no peer can cause. On a path that a connection can
 * reach, close that connection instead.
 */
#ifndef PGUSHER_BASE_CHECK_H
#define PGUSHER_BASE_CHECK_H

/* A failure logs `@file:line in function f(): check failed: condition` at FATAL. */
#define CHECK(condition)                                                                       \
	((condition) ? (void)0 : check_failed(__FILE__, __LINE__, __func__, #condition))

/* Logs and calls abort(); use CHECK() instead of calling this. */
_Noreturn void check_failed(
	const char *file, int line, const char *function, const char *condition);

#endif
